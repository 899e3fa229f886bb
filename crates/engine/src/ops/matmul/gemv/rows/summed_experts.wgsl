// A row of each of a token's experts, as one long row: x has as much for each of them.
@group(0) @binding(5) var<storage, read> ids: array<u32>;
@group(0) @binding(6) var<storage, read> shares: array<f32>;

// As in the parameters; a constant because it is a divisor.
override ROW_PIECES: u32 = 22u;
override EXPERTS: u32 = 1u;

fn row_start(row: u32) -> u32 {
    return row * ROW_PIECES;
}

fn place_of(piece: u32) -> u32 {
    // No id leads outside the weight, wherever it comes from.
    let expert = min(ids[token * p.chosen + piece / ROW_PIECES], EXPERTS - 1u);
    return expert * p.expert_rows * ROW_PIECES + piece % ROW_PIECES;
}

fn share_of(piece: u32) -> f32 {
    return shares[token * p.chosen + piece / ROW_PIECES];
}
