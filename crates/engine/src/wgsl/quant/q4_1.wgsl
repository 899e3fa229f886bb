// Q4_1: planes quants (16 bytes) | d, m (4). A unit is a block: 16 consecutive weights in the low nibbles, the next 16 in the high ones.
const MIDDLE: f32 = 8.0;
const SIGNED: bool = false;

fn packed_at(unit: u32) -> Packed {
    let quants = w[p.plane0 / 4u + unit];
    let d = unpack2x16float(word(p.plane1 + unit));
    let low = quants & vec4(0x0f0f0f0fu);
    let high = (quants >> vec4(4u)) & vec4(0x0f0f0f0fu);
    let levels = array<u32, 8>(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
    return Packed(levels, 0.0, vec2(d.x), vec2(-d.y));
}

fn unit_at(unit: u32) -> Unit {
    return unpacked(packed_at(unit));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
