// Results lie row by row.
fn y_place(row: u32) -> u32 {
    return row;
}
