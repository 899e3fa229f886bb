// The same row of each of a token's experts, concatenated to one long row, as x is.
@group(0) @binding(5) var<storage, read> ids: array<u32>;
@group(0) @binding(6) var<storage, read> shares: array<f32>;

// As in the parameters; a constant because it is a divisor.
override ROW_PIECES: u32 = 22u;
override EXPERTS: u32 = 1u;

fn row_start(row: u32) -> u32 {
    return row * ROW_PIECES;
}

fn piece_offset(piece: u32) -> u32 {
    // Ids are clamped, so that none reads outside the weight.
    let expert = min(ids[token * p.chosen + piece / ROW_PIECES], EXPERTS - 1u);
    return expert * p.expert_rows * ROW_PIECES + piece % ROW_PIECES;
}

fn piece_weight(piece: u32) -> f32 {
    return shares[token * p.chosen + piece / ROW_PIECES];
}
