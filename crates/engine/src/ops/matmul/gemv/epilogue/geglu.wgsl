// GeGLU: the first half of the rows are gates for the second half; a team computes equally many of both.
//#use gelu
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
        store_output(y_place(row), gelu(sums[i]) * sums[i + results()]);
    }
}
