// The rows of a token's experts, one expert after the other; where an output takes two rows, first all first ones, then all second ones.
@group(0) @binding(6) var<storage, read> ids: array<u32>;

// Rows of the output before the next part of an expert's rows, and rows of such a part; constants because they are divisors.
override BAND_ROWS: u32 = 1u;
override PART_ROWS: u32 = 1u;
override EXPERTS: u32 = 1u;

fn row_start(row: u32) -> u32 {
    let slot = row % BAND_ROWS / PART_ROWS;
    let inside = row / BAND_ROWS * PART_ROWS + row % PART_ROWS;
    // No id leads outside the weight, wherever it comes from.
    let expert = min(ids[token * p.chosen + slot], EXPERTS - 1u);
    return (expert * p.expert_rows + inside) * p.row_pieces;
}

fn place_of(piece: u32) -> u32 {
    return piece;
}

fn share_of(piece: u32) -> f32 {
    return 1.0;
}
