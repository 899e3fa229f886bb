// The size of a tile of matrix units, and the blocks of 16 by 16 that a subgroup makes of it. A lane brings one unit of weights at
// a time, so that there are twice as many lanes as rows.
const ROWS: u32 = 64u;
const COLUMNS: u32 = 64u;
const ROW_BLOCKS: u32 = 2u;
const COLUMN_BLOCKS: u32 = 2u;
