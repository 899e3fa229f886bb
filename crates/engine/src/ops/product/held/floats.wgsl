// Weights and x as floats.

// Behind the last write to x.
fn hold(lane: Lane) {
    workgroupBarrier();
    for (var unit = number(lane); unit < PIECES; unit += WG) {
        sh_pieces[unit] = column_of(shared_floats(unit, 0u)).sums;
    }
    workgroupBarrier();
}

fn column_at(unit: u32) -> Column {
    return Column(shared_floats(unit, 0u), sh_pieces[unit]);
}

fn unit_sum(unit: u32, column: Column) -> f32 {
    return unit_times(unit_at(unit), column);
}
