// GeGLU or SwiGLU: the first half of the rows are gates, the second half is multiplied with them; a team computes as many of each.
//#use gate
//#use store_layout
//#use store
fn results() -> u32 {
    return ROWS / 2u;
}

fn row_of(first: u32, i: u32) -> u32 {
    return first + i % results() + i / results() * (p.rows / 2u);
}

fn epilogue(row: u32, i: u32, sums: vec4<f32>) {
    if row < p.rows / 2u {
        store_output(y_index(row), gate(sums[i]) * sums[i + results()]);
    }
}
