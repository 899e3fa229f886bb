// Weights and x as floats.
fn hold_unit(unit: u32) {
    sh_units[unit] = column_of(shared_floats(unit)).sums;
}

fn column_at(unit: u32) -> Column {
    return Column(shared_floats(unit), sh_units[unit]);
}

fn unit_sum(unit: u32, column: Column) -> f32 {
    return unit_times(unit_at(unit), column);
}
