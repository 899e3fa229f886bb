// The shape of a split-K tile, and the units of a row or column that are staged at a time.
const ROWS: u32 = 32u;
const COLUMNS: u32 = 16u;
const SLICE: u32 = 8u;
