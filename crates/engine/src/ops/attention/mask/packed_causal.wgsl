// Causal mask of packed training sequences: all tokens are live, regardless of the step. Stores each row's log-sum-exp for the gradient.
@group(0) @binding(6) var<storage, read_write> log_sums: array<f32>;
@group(0) @binding(7) var<storage, read> starts: array<u32>;

fn first_position() -> u32 {
    return 0u;
}

fn live_tokens() -> u32 {
    return p.tokens;
}

fn keep_row(place: u32, largest: f32, sum: f32) {
    log_sums[place] = largest + log(sum);
}

// The first position a token sees.
fn seen_first(token: u32) -> u32 {
    return max(first_key(token), starts[token]);
}

// One past the last position that a token sees; last_end is its maximum over some tokens.
fn seen_end(token: u32) -> u32 {
    return first_position() + token + 1u;
}

fn last_end(first: u32, last: u32) -> u32 {
    return seen_end(last);
}
