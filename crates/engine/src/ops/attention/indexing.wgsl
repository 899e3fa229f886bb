// Parameters of attention, and the indexing of rows, positions and KV cache slots. Rows of queries that share a kv head are ordered by token,
// then by head of the group.
struct Params {
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    slots: u32,
    window: u32,
    // KV splits.
    splits: u32,
    row_blocks: u32,
    // Raw heads: eps of their norms, and their first vec4 and stride in vec4s.
    eps: f32,
    q_first: u32,
    q_stride: u32,
    k_first: u32,
    k_stride: u32,
    v_first: u32,
    v_stride: u32,
    // Blocks of rows per token if tokens are batch-invariant, else 0.
    token_blocks: u32,
    // What a dispatch that stores new keys does: 0 store and attend, 1 only store, 2 only attend.
    phase: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

// Some of the parameters again as constants, since dividing by a uniform is slow: heads, heads that share a kv head, and the slots of a ring buffer
// (a sliding-window KV cache), or 0 if the number of slots depends on the context.
override HEADS: u32 = 8u;
override GROUP: u32 = 8u;
override RING_SLOTS: u32 = 0u;

// The score of a key that a row does not see.
const MASKED: f32 = -3.0e38;

fn heads_of_group() -> u32 {
    return GROUP;
}

// The token that a row belongs to.
fn token_of(row: u32) -> u32 {
    return row / heads_of_group();
}

// Index of a row among all tokens and heads.
fn place_of(row: u32, kv_head: u32) -> u32 {
    return token_of(row) * HEADS + kv_head * heads_of_group() + row % heads_of_group();
}

// The first position that a query sees under a causal mask.
fn first_key(position: u32) -> u32 {
    return position + 1u - min(position + 1u, p.window);
}

fn sees(position: u32, key: u32) -> bool {
    return key <= position && position - key < p.window;
}

// The first vec4 of a position in a KV cache.
fn cache_at(key: u32, kv_head: u32) -> u32 {
    return (slot_of(key) * p.kv_heads + kv_head) * WIDTH;
}

fn slot_of(key: u32) -> u32 {
    //#batch if SEQUENCE_WORDS > 0u {
    //#batch     return paged_slot(key);
    //#batch }
    if RING_SLOTS > 0u {
        return key % max(RING_SLOTS, 1u);
    }
    if key >= p.slots {
        return key % p.slots;
    }
    return key;
}
