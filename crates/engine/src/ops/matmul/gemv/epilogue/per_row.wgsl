// Each output is a function (part `output`) of one row's sum.
//#use output
//#use store
fn results() -> u32 {
    return ROWS;
}

fn row_of(first: u32, i: u32) -> u32 {
    return first + i;
}

fn epilogue(row: u32, i: u32, sums: vec4<f32>) {
    if row < p.rows {
        store_output(p.first_row + row, output_of(p.first_row + row, sums[i]));
    }
}
