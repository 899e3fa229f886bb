// TQ1_0: planes bytes of five ternary digits, and four of four digits (52 bytes) | d (2). A unit is 32 consecutive weights: the same digit
// of 32 bytes, or digits of the last 20.
fn unit_at(unit: u32) -> Unit {
    let levels = array<vec4<f32>, 8>(
        tq1_levels(unit, 0u), tq1_levels(unit, 1u), tq1_levels(unit, 2u), tq1_levels(unit, 3u),
        tq1_levels(unit, 4u), tq1_levels(unit, 5u), tq1_levels(unit, 6u), tq1_levels(unit, 7u),
    );
    return Unit(levels, vec4(half_at(p.plane1, unit / 8u)), vec4(0.0));
}

fn tq1_levels(unit: u32, group: u32) -> vec4<f32> {
    let sub = unit % 8u;
    // Words of the block: 8 with digits of units 0 to 4, then 4, then 1.
    var digit = sub;
    var at = group;
    if sub >= 5u {
        let rest = (sub - 5u) * 8u + group;
        digit = select(rest / 4u, rest - 20u, rest >= 20u);
        at = select(8u + rest % 4u, 12u, rest >= 20u);
    }
    // 3^digit; a byte is a fraction of 256, and multiplying shifts out its first digits.
    let power = select(select(1u, 3u, digit == 1u), select(select(9u, 27u, digit == 3u), 81u, digit == 4u), digit >= 2u);
    let bytes = (vec4(word(p.plane0 + unit / 8u * 13u + at)) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u);
    return vec4<f32>((((bytes * power) & vec4(255u)) * 3u) >> vec4(8u)) - 1.0;
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
