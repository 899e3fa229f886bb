// Weights as floats, x where it is.
//#use x_unit
alias Held = Unit;

fn held_at(unit: u32) -> Held {
    return unit_at(unit);
}

fn column_at(unit: u32) -> Column {
    return column_of(x_unit(token * p.x_columns, unit));
}

fn piece_sum(weights: Held, column: Column) -> f32 {
    return unit_times(weights, column);
}
