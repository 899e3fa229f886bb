// Candidates are all logits, read as bits: the result does not depend on a device's handling of NaN and infinity.
@group(0) @binding(4) var<storage, read> logits: array<u32>;

fn candidate_key(i: u32) -> u32 {
    return key_of(logits[row_start + i]);
}

fn candidate_id(i: u32) -> u32 {
    return i;
}
