// The columns of a register tile, and the vec4s of rows and columns that a lane computes.
const COLUMNS: u32 = 64u;
const ROW_VEC4S: u32 = 2u;
const COLUMN_VEC4S: u32 = 2u;
