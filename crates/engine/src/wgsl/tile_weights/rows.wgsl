// Rows of the weight are rows of the tile: SLICE adjacent lanes load SLICE units of one row. The kernel defines the first unit of a row:
// row_units_at(tile, row).
const WEIGHT_GROUPS: u32 = ROWS * STRIDE;

// Units along k.
fn depth_units() -> u32 {
    return p.row_units;
}

// The units of a tile along k, as a half-open range.
fn depth(tile: Tile) -> vec2<u32> {
    return vec2(0u, p.row_units);
}

fn weight_start(tile: Tile, lane: u32) -> u32 {
    return row_units_at(tile, min(lane / SLICE, ROWS - 1u));
}

fn weight_unit(start: u32, unit: u32, lane: u32) -> u32 {
    return start + min(unit + lane % SLICE, p.row_units - 1u);
}

fn weight_place(lane: u32) -> u32 {
    return lane / SLICE * STRIDE + lane % SLICE * 8u;
}

// 16 rows by 16 of k, from vec4 k on.
fn left_block(row: u32, k: u32) -> Left {
    return left(row * STRIDE + k);
}
