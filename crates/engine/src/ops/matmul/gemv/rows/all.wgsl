// All rows of the weight, in order.
fn row_start(row: u32) -> u32 {
    return row * p.row_pieces;
}

fn piece_offset(piece: u32) -> u32 {
    return piece;
}

fn piece_weight(piece: u32) -> f32 {
    return 1.0;
}
