// Weights as floats, x from global memory.
//#use x_unit
alias Weights = Unit;

fn weights_at(unit: u32) -> Weights {
    return unit_at(unit);
}

fn column_at(unit: u32) -> Column {
    return column_of(x_unit(token * p.x_columns, unit));
}

fn piece_sum(weights: Weights, column: Column) -> f32 {
    return unit_times(weights, column);
}
