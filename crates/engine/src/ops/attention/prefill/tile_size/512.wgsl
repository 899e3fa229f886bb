// Heads of 512 with matrix units.
const HEAD: u32 = 512u;
const WG: u32 = 256u;
const ROWS: u32 = 32u;
const KEYS: u32 = 64u;
// Keys whose values are staged at a time.
const VALUE_KEYS: u32 = 16u;
