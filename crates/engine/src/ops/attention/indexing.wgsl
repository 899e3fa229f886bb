// Who sees what. Rows of queries that share a kv head are counted token by token, then by head of the group.
struct Params {
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    slots: u32,
    window: u32,
    // How many KV splits there are.
    splits: u32,
    row_blocks: u32,
    // Norm of raw heads, and where they lie, in quads.
    eps: f32,
    q_first: u32,
    q_stride: u32,
    k_first: u32,
    k_stride: u32,
    v_first: u32,
    v_stride: u32,
    // Tokens are computed apart: blocks of rows of each of them, or 0.
    token_blocks: u32,
    // What a dispatch does where the run's own tokens stand apart: everything, only store them, or all but that.
    phase: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

// Some of them again, as constants: dividing by what is not known before takes longer than most of what is done here. Heads, those that
// share a kv head, and how many slots positions go round in, or 0 where that differs from one context to the next.
override HEADS: u32 = 8u;
override GROUP: u32 = 8u;
override RING_SLOTS: u32 = 0u;

// Stands for a score that does not count.
const MASKED: f32 = -3.0e38;

fn heads_of_group() -> u32 {
    return GROUP;
}

// Which token a row belongs to.
fn token_of(row: u32) -> u32 {
    return row / heads_of_group();
}

// Number of a row among all tokens and heads.
fn place_of(row: u32, kv_head: u32) -> u32 {
    return token_of(row) * HEADS + kv_head * heads_of_group() + row % heads_of_group();
}

// The first position a query sees.
fn first_key(position: u32) -> u32 {
    return position + 1u - min(position + 1u, p.window);
}

fn sees(position: u32, key: u32) -> bool {
    return key <= position && position - key < p.window;
}

// Where a position's numbers start in a cache.
fn cache_at(key: u32, kv_head: u32) -> u32 {
    return (slot_of(key) * p.kv_heads + kv_head) * WIDTH;
}

fn slot_of(key: u32) -> u32 {
    if RING_SLOTS > 0u {
        return key % max(RING_SLOTS, 1u);
    }
    if key >= p.slots {
        return key % p.slots;
    }
    return key;
}
