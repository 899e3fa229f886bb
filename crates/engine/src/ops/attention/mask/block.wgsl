// Block mask: causal, and a token of a block also sees the rest of its block.
@group(0) @binding(6) var<storage, read> block_ends: array<u32>;

fn first_position() -> u32 {
    return run.position;
}

fn live_tokens() -> u32 {
    return run.count;
}

fn keep_row(place: u32, largest: f32, sum: f32) {
}

// The first position a token sees.
fn seen_first(token: u32) -> u32 {
    return first_key(first_position() + token);
}

// One past the last position that a token sees; last_end is its maximum over some tokens.
fn seen_end(token: u32) -> u32 {
    return max(run.position + token + 1u, min(block_ends[token], run.position + run.count));
}

fn last_end(first: u32, last: u32) -> u32 {
    var end = seen_end(last);
    for (var token = first; token < last; token++) {
        end = max(end, seen_end(token));
    }
    return end;
}
