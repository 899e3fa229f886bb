// The elements of a column that a unit of weights is multiplied with.
//#use columns
fn x_unit(column: u32, unit: u32) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        x4(column, unit_column(unit, 0u)), x4(column, unit_column(unit, 1u)),
        x4(column, unit_column(unit, 2u)), x4(column, unit_column(unit, 3u)),
        x4(column, unit_column(unit, 4u)), x4(column, unit_column(unit, 5u)),
        x4(column, unit_column(unit, 6u)), x4(column, unit_column(unit, 7u)),
    );
}
