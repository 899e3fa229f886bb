// Q4_0: planes quants (16 bytes) | d (2). A unit is a block: 16 neighbours in the low nibbles, the next 16 in the high ones.
fn unit_at(unit: u32) -> Unit {
    let quants = w[p.plane0 / 4u + unit];
    let d = half_at(p.plane1, unit);
    let low = quants & vec4(0x0f0f0f0fu);
    let high = (quants >> vec4(4u)) & vec4(0x0f0f0f0fu);
    let levels = array<vec4<f32>, 8>(
        bytes4(low.x) - 8.0, bytes4(low.y) - 8.0, bytes4(low.z) - 8.0, bytes4(low.w) - 8.0,
        bytes4(high.x) - 8.0, bytes4(high.y) - 8.0, bytes4(high.z) - 8.0, bytes4(high.w) - 8.0,
    );
    return Unit(levels, vec4(d), vec4(0.0));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
