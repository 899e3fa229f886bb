// The columns of a register tile, and how many vec4s of rows and columns a lane computes of it.
const COLUMNS: u32 = 64u;
const ROW_VEC4S: u32 = 2u;
const COLUMN_VEC4S: u32 = 2u;
