// Q5_1: planes quants (16 bytes) | fifth bits (4) | d, m (4). A unit is a block: 16 neighbours in the low nibbles, the next 16 in
// the high ones, one fifth bit each.
fn unit_at(unit: u32) -> Unit {
    let quants = w[p.plane0 / 4u + unit];
    let fifth = vec4(word(p.plane1 + unit));
    let d = unpack2x16float(word(p.plane2 + unit));
    let low = (quants & vec4(0x0f0f0f0fu)) | (spread(fifth >> vec4(0u, 4u, 8u, 12u)) << vec4(4u));
    let high = ((quants >> vec4(4u)) & vec4(0x0f0f0f0fu)) | (spread(fifth >> vec4(16u, 20u, 24u, 28u)) << vec4(4u));
    let levels = array<vec4<f32>, 8>(
        bytes4(low.x), bytes4(low.y), bytes4(low.z), bytes4(low.w),
        bytes4(high.x), bytes4(high.y), bytes4(high.z), bytes4(high.w),
    );
    return Unit(levels, vec4(d.x), vec4(-d.y));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
