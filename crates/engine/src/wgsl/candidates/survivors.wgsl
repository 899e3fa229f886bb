// Candidates are the keys and ids that an earlier dispatch kept.
@group(0) @binding(4) var<storage, read> keys: array<u32>;
@group(0) @binding(5) var<storage, read> ids: array<u32>;

fn candidate_key(i: u32) -> u32 {
    return keys[row_start + i];
}

fn candidate_id(i: u32) -> u32 {
    return ids[row_start + i];
}
