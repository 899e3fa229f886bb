// Columns of the weight are rows of the tile, and its rows are summed over: 32 SLICE at a time, of which a lane loads one unit. Where
// tiles are few, CHUNKS workgroups share one, each for some of the rows. The kernel's tile says its `first_unit` and its `chunk`.
override CHUNKS: u32 = 1u;
// Units of a row side by side.
const UNITS: u32 = ROWS / 32u;
// From one row to the next: two groups more than there are, so that they do not hit the same memory bank.
const TRANSPOSED_STRIDE: u32 = ROWS / 4u + 2u;
const WEIGHT_GROUPS: u32 = SLICE * 32u * TRANSPOSED_STRIDE;

// Rows that are summed over, in the units that x has.
fn depth_units() -> u32 {
    return (p.rows + 31u) / 32u;
}

// Those of a tile, from the first to before the second: whole pairs.
fn depth(tile: Tile) -> vec2<u32> {
    let pairs = (unit_pairs() + CHUNKS - 1u) / CHUNKS;
    let first = tile.chunk * pairs * 2u;
    return vec2(min(first, unit_pairs() * 2u), min(first + pairs * 2u, unit_pairs() * 2u));
}

// A unit past the end is not stored: it is read as the last one.
fn weight_start(tile: Tile, lane: u32) -> u32 {
    return min(tile.first_unit + lane % UNITS, p.row_units - 1u);
}

// Rows past the end count nothing because x is zero there.
fn weight_unit(start: u32, unit: u32, lane: u32) -> u32 {
    return min(unit * 32u + lane / UNITS, p.rows - 1u) * p.row_units + start;
}

fn weight_place(lane: u32) -> u32 {
    return lane / UNITS * TRANSPOSED_STRIDE + lane % UNITS * 8u;
}

// 16 rows of the tile and 16 of what is summed over, from group k on.
fn left_block(row: u32, k: u32) -> Left {
    return left_transposed(k * 4u * TRANSPOSED_STRIDE + row / 4u, TRANSPOSED_STRIDE);
}
