// The shape of a GEMM tile with matrix units, the 16 × 16 blocks per subgroup, the units of a row or column staged at a time, and the
// number of subgroups that stage a block of sums at a time.
const ROWS: u32 = 64u;
const COLUMNS: u32 = 16u;
const ROW_BLOCKS: u32 = 1u;
const COLUMN_BLOCKS: u32 = 1u;
const SLICE: u32 = 2u;
const SUM_BLOCKS: u32 = 1u;
