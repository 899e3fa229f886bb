// TQ2_0: planes quants (64 bytes) | d (2). A unit is 32 consecutive weights: the same two bits of 32 bytes.
fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 / 4u + unit / 8u * 4u + unit % 8u / 4u * 2u;
    let shift = vec4(unit % 4u * 2u);
    let a = (w[at] >> shift) & vec4(0x03030303u);
    let b = (w[at + 1u] >> shift) & vec4(0x03030303u);
    let levels = array<vec4<f32>, 8>(
        bytes4(a.x) - 1.0, bytes4(a.y) - 1.0, bytes4(a.z) - 1.0, bytes4(a.w) - 1.0,
        bytes4(b.x) - 1.0, bytes4(b.y) - 1.0, bytes4(b.z) - 1.0, bytes4(b.w) - 1.0,
    );
    return Unit(levels, vec4(half_at(p.plane1, unit / 8u)), vec4(0.0));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
