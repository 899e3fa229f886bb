// The shape of a split-K tile, its subgroups, and the blocks of sums in workgroup memory at a time.
const ROWS: u32 = 32u;
const COLUMNS: u32 = 16u;
const SUBGROUPS: u32 = 4u;
const SUM_BLOCKS: u32 = 1u;
