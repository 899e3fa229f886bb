// All rows in order.
fn row_start(row: u32) -> u32 {
    return row * p.row_pieces;
}

fn place_of(piece: u32) -> u32 {
    return piece;
}

fn share_of(piece: u32) -> f32 {
    return 1.0;
}
