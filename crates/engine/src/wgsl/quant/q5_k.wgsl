// Q5_K: planes quants (128 bytes) | fifth bits (32) | d, dmin, 6-bit scales (16). A unit is 16 bytes of quants: 16 consecutive weights in the
// low nibbles, and in the high nibbles the 16 weights 32 further on.
const MIDDLE: f32 = 16.0;
const SIGNED: bool = false;

fn levels_at(unit: u32) -> array<u32, 8> {
    let quants = w[p.plane0 / 4u + unit];
    let fifth = w[p.plane1 / 4u + unit / 8u * 2u + unit % 2u] >> vec4(unit % 8u / 2u * 2u);
    let low = (quants & vec4(0x0f0f0f0fu)) | ((fifth & vec4(0x01010101u)) << vec4(4u));
    let high = ((quants >> vec4(4u)) & vec4(0x0f0f0f0fu)) | ((fifth & vec4(0x02020202u)) << vec4(3u));
    return array<u32, 8>(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
}

fn pair_scales(pair: u32) -> vec4<f32> {
    let head = w[p.plane2 / 4u + pair / 4u];
    return k_scales(head, pair % 4u * 2u) * unpack2x16float(head.x).xxyy;
}

fn packed_at(unit: u32) -> Packed {
    let scales = pair_scales(unit / 2u);
    return Packed(levels_at(unit), 0.0, scales.xy, scales.zw);
}

fn unit_at(unit: u32) -> Unit {
    return unpacked(packed_at(unit));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit / 2u * 64u + unit % 2u * 16u + group / 4u * 32u + group % 4u * 4u;
}
