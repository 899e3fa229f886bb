// Weights and x as floats.
//#use words
alias Held = Unit;

fn held_at(unit: u32) -> Held {
    return unit_at(unit);
}

fn column_at(unit: u32) -> Column {
    return Column(held_floats(unit, 0u), about_piece(unit));
}

fn piece_sum(weights: Held, column: Column) -> f32 {
    return unit_times(weights, column);
}
