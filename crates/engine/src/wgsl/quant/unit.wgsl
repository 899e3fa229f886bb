// What a column holds against a unit of weights, and their product. Written out: loops with bound checks are not unrolled
// by every compiler, and arrays indexed in a loop leave the registers.
fn x_unit(column: u32, unit: u32) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        x4(column, unit_column(unit, 0u)), x4(column, unit_column(unit, 1u)),
        x4(column, unit_column(unit, 2u)), x4(column, unit_column(unit, 3u)),
        x4(column, unit_column(unit, 4u)), x4(column, unit_column(unit, 5u)),
        x4(column, unit_column(unit, 6u)), x4(column, unit_column(unit, 7u)),
    );
}

fn unit_dot(a: array<vec4<f32>, 8>, b: array<vec4<f32>, 8>) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3])
        + dot(a[4], b[4]) + dot(a[5], b[5]) + dot(a[6], b[6]) + dot(a[7], b[7]);
}
