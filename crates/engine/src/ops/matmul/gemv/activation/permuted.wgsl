// Weights as floats, x from global memory in the order of the weight's units.
//#use columns
alias Weights = Unit;

fn weights_at(unit: u32) -> Weights {
    return unit_at(unit);
}

fn x_group(group: u32, unit: u32) -> vec4<f32> {
    return x[(token * 8u + group) * p.pieces + unit];
}

fn column_at(unit: u32) -> Column {
    return column_of(array<vec4<f32>, 8>(
        x_group(0u, unit), x_group(1u, unit), x_group(2u, unit), x_group(3u, unit),
        x_group(4u, unit), x_group(5u, unit), x_group(6u, unit), x_group(7u, unit),
    ));
}

fn piece_sum(weights: Weights, column: Column) -> f32 {
    return unit_times(weights, column);
}
