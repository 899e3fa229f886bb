// Heads of 64 by matrix units.
const HEAD: u32 = 64u;
const WG: u32 = 128u;
const KEYS: u32 = 32u;
