// Where the candidates of this workgroup's row begin.
var<private> row_start: u32 = 0u;

// Logits as integers that sort like them. NaN is 0, below everything; both zeros are one number.
fn key_of(bits: u32) -> u32 {
    let size = bits & 0x7fffffffu;
    if size > 0x7f800000u {
        return 0u;
    }
    return select(size | 0x80000000u, ~bits, size != 0u && bits > 0x7fffffffu);
}

// The logit of a key; NaN has become minus infinity.
fn bits_of(key: u32) -> u32 {
    if key == 0u {
        return 0xff800000u;
    }
    return select(~key, key & 0x7fffffffu, key > 0x7fffffffu);
}

// Larger logits first, then lower ids.
fn goes_before(key: u32, id: u32, other_key: u32, other_id: u32) -> bool {
    return key > other_key || (key == other_key && id < other_id);
}
