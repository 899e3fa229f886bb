// Weights and x as floats.
//#use x_words
alias Weights = Unit;

fn weights_at(unit: u32) -> Weights {
    return unit_at(unit);
}

fn column_at(unit: u32) -> Column {
    return Column(staged_floats(unit, 0u), piece_stats(unit));
}

fn piece_sum(weights: Weights, column: Column) -> f32 {
    return unit_times(weights, column);
}
