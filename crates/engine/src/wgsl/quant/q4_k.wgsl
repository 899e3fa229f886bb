// Q4_K: planes quants (128 bytes) | d, dmin, 6-bit scales (16). A unit is 16 bytes of quants: 16 neighbours in the low
// nibbles, and in the high nibbles the 16 that lie 32 further on.
fn packed_at(unit: u32) -> Packed {
    let quants = w[p.plane0 / 4u + unit];
    let head = w[p.plane1 / 4u + unit / 8u];
    let d = unpack2x16float(head.x);
    let s = unit % 8u / 2u * 2u;
    let scales = k_scales(head, s) * d.xxyy;
    let low = quants & vec4(0x0f0f0f0fu);
    let high = (quants >> vec4(4u)) & vec4(0x0f0f0f0fu);
    let levels = array<u32, 8>(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
    return Packed(levels, 0.0, scales.xy, scales.zw);
}

fn unit_at(unit: u32) -> Unit {
    return unpacked(packed_at(unit));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit / 2u * 64u + unit % 2u * 16u + group / 4u * 32u + group % 4u * 4u;
}
