// Q4_K: planes quants (128 bytes) | d, dmin, 6-bit scales (16). A unit is 16 bytes of quants: 16 neighbours in the low
// nibbles, and in the high nibbles the 16 that lie 32 further on.
const MIDDLE: f32 = 8.0;
const SIGNED: bool = false;

fn levels_at(unit: u32) -> array<u32, 8> {
    let quants = w[p.plane0 / 4u + unit];
    let low = quants & vec4(0x0f0f0f0fu);
    let high = (quants >> vec4(4u)) & vec4(0x0f0f0f0fu);
    return array<u32, 8>(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
}

fn pair_scales(pair: u32) -> vec4<f32> {
    let head = w[p.plane1 / 4u + pair / 4u];
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
