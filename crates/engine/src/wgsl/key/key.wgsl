// The index of the first candidate of this workgroup's row.
var<private> row_start: u32 = 0u;

// Maps a logit's bits to an integer with the same order. NaN maps to 0, below everything; both zeros map to the same key.
fn key_of(bits: u32) -> u32 {
    let size = bits & 0x7fffffffu;
    if size > 0x7f800000u {
        return 0u;
    }
    return select(size | 0x80000000u, ~bits, size != 0u && bits > 0x7fffffffu);
}

// The bits of a key's logit; NaN becomes minus infinity.
fn bits_of(key: u32) -> u32 {
    if key == 0u {
        return 0xff800000u;
    }
    return select(~key, key & 0x7fffffffu, key > 0x7fffffffu);
}

// Whether a candidate ranks before another: larger logit first, then lower id.
fn goes_before(key: u32, id: u32, other_key: u32, other_id: u32) -> bool {
    return key > other_key || (key == other_key && id < other_id);
}
