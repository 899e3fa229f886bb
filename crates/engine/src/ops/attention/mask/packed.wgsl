// Packed sequences: a token sees the half-open range of positions ranges[token]. Neither end decreases from token to token.
@group(0) @binding(6) var<storage, read> ranges: array<vec2<u32>>;

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
    return ranges[token].x;
}

// One past the last position that a token sees; last_end is its maximum over some tokens.
fn seen_end(token: u32) -> u32 {
    return ranges[token].y;
}

fn last_end(first: u32, last: u32) -> u32 {
    return seen_end(last);
}
