// How the keys of a pass are split over workgroups: into KV splits of whole tiles, the same for all rows. The graph is built for the longest
// cache; the number of live keys is known only here. With OWN_SPLIT, the pass's own tokens are the first KV split, and the others hold the
// keys of earlier passes. Batch-invariant tokens are split as if each were a pass of its own.
// The number of KV splits, and whether the pass's own tokens are the first.
override SPLITS: u32 = 1u;
override OWN_SPLIT: u32 = 0u;

struct KvSplit {
    first: u32,
    end: u32,
}

// The positions of the pass's own tokens; if batch-invariant, only that of this token.
fn own_tokens(token: u32) -> KvSplit {
    //#batch let run = row_step(token);
    if p.token_blocks > 0u {
        return KvSplit(run.position + token, run.position + token + 1u);
    }
    return KvSplit(run.position, run.position + run.count);
}

fn all_keys(token: u32) -> KvSplit {
    let own = own_tokens(token);
    return KvSplit(first_key(own.first), select(own.end, own.first, OWN_SPLIT == 1u));
}

fn kv_split_length(keys: u32) -> u32 {
    let splits = SPLITS - OWN_SPLIT;
    let share = (keys + splits - 1u) / splits;
    return max((share + TILE - 1u) / TILE, 1u) * TILE;
}

// Empty for a KV split out of range.
fn kv_split(number: u32, token: u32) -> KvSplit {
    if number < OWN_SPLIT {
        return own_tokens(token);
    }
    let all = all_keys(token);
    let length = kv_split_length(all.end - all.first);
    let first = all.first + (number - OWN_SPLIT) * length;
    return KvSplit(first, min(first + length, all.end));
}

fn live_kv_splits(token: u32) -> u32 {
    let all = all_keys(token);
    let length = kv_split_length(all.end - all.first);
    return OWN_SPLIT + (all.end - all.first + length - 1u) / length;
}
