// The rows of a token's experts, one expert below the other; where a result takes two rows, first all first ones, then all second ones.
@group(0) @binding(6) var<storage, read> ids: array<u32>;

fn row_start(row: u32) -> u32 {
    let slot = row % p.band_rows / p.part_rows;
    let inside = row / p.band_rows * p.part_rows + row % p.part_rows;
    return (ids[token * p.chosen + slot] * p.expert_rows + inside) * p.row_pieces;
}

fn place_of(piece: u32) -> u32 {
    return piece;
}

fn share_of(piece: u32) -> f32 {
    return 1.0;
}
