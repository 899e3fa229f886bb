// Q5_0: planes quants (16 bytes) | fifth bits (4) | d (2). A unit is a block: 16 consecutive weights in the low nibbles, the next 16 in the
// high ones, one fifth bit each.
const MIDDLE: f32 = 16.0;
const SIGNED: bool = false;

fn packed_at(unit: u32) -> Packed {
    let quants = w[p.plane0 / 4u + unit];
    let fifth = vec4(word(p.plane1 + unit));
    let d = half_at(p.plane2, unit);
    let low = (quants & vec4(0x0f0f0f0fu)) | (spread(fifth >> vec4(0u, 4u, 8u, 12u)) << vec4(4u));
    let high = ((quants >> vec4(4u)) & vec4(0x0f0f0f0fu)) | (spread(fifth >> vec4(16u, 20u, 24u, 28u)) << vec4(4u));
    let levels = array<u32, 8>(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
    return Packed(levels, 16.0, vec2(d), vec2(0.0));
}

fn unit_at(unit: u32) -> Unit {
    return unpacked_less(packed_at(unit), 16.0);
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
