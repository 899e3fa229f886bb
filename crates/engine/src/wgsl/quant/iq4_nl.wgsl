// IQ4_NL: planes quants (16 bytes) | d (2). A unit is a block: 16 consecutive weights in the low nibbles, the next 16 in the high ones; a
// nibble is one of sixteen levels.
// The sixteen levels, each plus 128.
const LEVELS = vec4(0x3f2d1801u, 0x766a5d4fu, 0xa6998d81u, 0xf1d9c5b5u);

fn unit_at(unit: u32) -> Unit {
    let quants = w[p.plane0 / 4u + unit];
    let high = quants >> vec4(4u);
    let d = half_at(p.plane1, unit);
    let levels = array<vec4<f32>, 8>(
        look_up(LEVELS, quants.x) - 128.0, look_up(LEVELS, quants.y) - 128.0,
        look_up(LEVELS, quants.z) - 128.0, look_up(LEVELS, quants.w) - 128.0,
        look_up(LEVELS, high.x) - 128.0, look_up(LEVELS, high.y) - 128.0,
        look_up(LEVELS, high.z) - 128.0, look_up(LEVELS, high.w) - 128.0,
    );
    return Unit(levels, vec4(d), vec4(0.0));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
