// Candidates are all logits; they are read as bits, so that no device's idea of NaN or infinity matters.
@group(0) @binding(4) var<storage, read> logits: array<u32>;

fn candidate_key(i: u32) -> u32 {
    return key_of(logits[row_start + i]);
}

fn candidate_id(i: u32) -> u32 {
    return i;
}
