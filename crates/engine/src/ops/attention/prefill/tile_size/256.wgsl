// Heads of 256 with matrix units.
const HEAD: u32 = 256u;
const WG: u32 = 128u;
const ROWS: u32 = 32u;
const KEYS: u32 = 64u;
// Keys whose values are staged at a time.
const VALUE_KEYS: u32 = 16u;
