// The shape of a tile for few columns, the blocks of 16 columns that a subgroup computes of it, and the units of a row or column that are
// staged at a time.
const ROWS: u32 = 16u;
const COLUMNS: u32 = 32u;
const COLUMN_BLOCKS: u32 = 2u;
const SLICE: u32 = 8u;
