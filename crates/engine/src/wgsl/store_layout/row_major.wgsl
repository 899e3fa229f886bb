// Outputs are stored row-major.
fn y_place(row: u32) -> u32 {
    return row;
}
