// Outputs are stored row-major.
fn y_index(row: u32) -> u32 {
    return row;
}
