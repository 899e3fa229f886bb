// A unit of a weight's row with the same columns of x.
fn unit_dot(weights: array<vec4<f32>, 8>, unit: u32, c: u32) -> f32 {
    return dot(weights[0], x4(c, unit_column(unit, 0u))) + dot(weights[1], x4(c, unit_column(unit, 1u)))
        + dot(weights[2], x4(c, unit_column(unit, 2u))) + dot(weights[3], x4(c, unit_column(unit, 3u)))
        + dot(weights[4], x4(c, unit_column(unit, 4u))) + dot(weights[5], x4(c, unit_column(unit, 5u)))
        + dot(weights[6], x4(c, unit_column(unit, 6u))) + dot(weights[7], x4(c, unit_column(unit, 7u)));
}
