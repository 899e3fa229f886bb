// Heads of 64 with matrix units.
const HEAD: u32 = 64u;
const WG: u32 = 128u;
const ROWS: u32 = 64u;
const KEYS: u32 = 32u;
// Keys whose values are staged at a time.
const VALUE_KEYS: u32 = 32u;
