// Bidirectional: every live token of the pass sees every other one.
fn first_position() -> u32 {
    return 0u;
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
    return run.count;
}

fn last_end(first: u32, last: u32) -> u32 {
    return run.count;
}
