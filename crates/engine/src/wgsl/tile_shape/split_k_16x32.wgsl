// The shape of a split-K tile, its subgroups, and the blocks of sums in workgroup memory at a time.
const ROWS: u32 = 16u;
const COLUMNS: u32 = 32u;
const SUBGROUPS: u32 = 16u;
const SUM_BLOCKS: u32 = 2u;
