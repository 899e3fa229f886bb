// Heads of 128 by matrix units.
const HEAD: u32 = 128u;
const WG: u32 = 128u;
const ROWS: u32 = 64u;
const KEYS: u32 = 32u;
// Keys whose values are brought at a time.
const VALUE_KEYS: u32 = 32u;
