// Columns of the weight are rows of the tile, and its rows are k: 32 SLICE of k at a time, of which a lane loads one unit. If there are too
// few tiles, CHUNKS workgroups share one, each with a part of k. The kernel's tile has a `first_unit` and a `chunk`.
override CHUNKS: u32 = 1u;
// Units of the tile per row of the weight.
const UNITS: u32 = ROWS / 32u;
// The stride between rows: two vec4s more than needed, so that rows do not hit the same memory bank.
const TRANSPOSED_STRIDE: u32 = ROWS / 4u + 2u;
const WEIGHT_GROUPS: u32 = SLICE * 32u * TRANSPOSED_STRIDE;

// The weight's rows (k), in units of x.
fn depth_units() -> u32 {
    return (p.rows + 31u) / 32u;
}

// The units of a tile along k, as a half-open range; whole pairs.
fn depth(tile: Tile) -> vec2<u32> {
    let pairs = (unit_pairs() + CHUNKS - 1u) / CHUNKS;
    let first = tile.chunk * pairs * 2u;
    return vec2(min(first, unit_pairs() * 2u), min(first + pairs * 2u, unit_pairs() * 2u));
}

// A unit out of range is clamped to the last one and not stored.
fn weight_start(tile: Tile, lane: u32) -> u32 {
    return min(tile.first_unit + lane % UNITS, p.row_units - 1u);
}

// Rows out of range do not matter because x is zero there.
fn weight_unit(start: u32, unit: u32, lane: u32) -> u32 {
    return min(unit * 32u + lane / UNITS, p.rows - 1u) * p.row_units + start;
}

fn weight_place(lane: u32) -> u32 {
    return lane / UNITS * TRANSPOSED_STRIDE + lane % UNITS * 8u;
}

// 16 rows of the tile by 16 of k, from vec4 k on.
fn left_block(row: u32, k: u32) -> Left {
    return left_transposed(k * 4u * TRANSPOSED_STRIDE + row / 4u, TRANSPOSED_STRIDE);
}
