// How the keys of a run are dealt out to several workgroups: in KV splits of whole tiles, the same for all rows. The graph is
// made for the longest cache; how much of it lives is known only now. Where the run's own tokens stand apart, they are the
// first KV split, and the others hold what was in the caches before. Where tokens are computed apart, each is a run of its own.
// How many there are, and whether the run's own tokens are the first of them.
override SPLITS: u32 = 1u;
override OWN_SPLIT: u32 = 0u;

struct KvSplit {
    first: u32,
    end: u32,
}

// The tokens that are computed together with this one.
fn own_tokens(token: u32) -> KvSplit {
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

// Empty where there is none of this number.
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
