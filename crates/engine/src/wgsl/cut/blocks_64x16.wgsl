// The columns of a plain tile, and how many quads of rows and columns a lane makes of it.
const COLUMNS: u32 = 16u;
const ROW_QUADS: u32 = 1u;
const COLUMN_QUADS: u32 = 1u;
