// The rows of a token's experts, one expert after the other; if an output takes two rows, first the first rows of all outputs, then the second.
@group(0) @binding(6) var<storage, read> ids: array<u32>;

// Output rows of all experts in a band (first or second rows), and of one expert in it; constants because they are divisors.
override BAND_ROWS: u32 = 1u;
override PART_ROWS: u32 = 1u;
override EXPERTS: u32 = 1u;

fn row_start(row: u32) -> u32 {
    let slot = row % BAND_ROWS / PART_ROWS;
    let inside = row / BAND_ROWS * PART_ROWS + row % PART_ROWS;
    // Ids are clamped, so that none reads outside the weight.
    let expert = min(ids[token * p.chosen + slot], EXPERTS - 1u);
    return (expert * p.expert_rows + inside) * p.row_pieces;
}

fn piece_offset(piece: u32) -> u32 {
    return piece;
}

fn piece_weight(piece: u32) -> f32 {
    return 1.0;
}
