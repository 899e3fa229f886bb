// The first half of the rows are gates, the second what they let through: a team makes as many of each.
//#use activation
//#use lay
//#use given
fn results() -> u32 {
    return ROWS / 2u;
}

fn row_of(first: u32, i: u32) -> u32 {
    return first + i % results() + i / results() * (p.rows / 2u);
}

fn finish(row: u32, i: u32, sums: vec4<f32>) {
    if row < p.rows / 2u {
        give(y_place(row), gelu(sums[i]) * sums[i + results()]);
    }
}
