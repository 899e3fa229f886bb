// The shape of a tile with matrix units, the blocks of 16 by 16 that a subgroup computes of it, the units of a row or column that are staged
// at a time, and how many subgroups have room for a block of sums at a time.
const ROWS: u32 = 128u;
const COLUMNS: u32 = 32u;
const ROW_BLOCKS: u32 = 2u;
const COLUMN_BLOCKS: u32 = 2u;
const SLICE: u32 = 1u;
const SUM_BLOCKS: u32 = 1u;
