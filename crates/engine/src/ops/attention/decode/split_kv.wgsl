// o[row] = sum over j of softmax(q[row] . k[j]) * v[j]     over the keys j of one KV split, for ROWS rows that share a kv head
// One workgroup per KV split (x), block of rows (y) and kv head (z). The part `rows` processes the keys in tiles.
// With one KV split the kernel writes the result, else partials: the weighted sums, followed by (largest score, sum of weights) of each row
// and KV split.
override WIDTH: u32 = 256u;
override DIM4: u32 = 64u;
override ROWS: u32 = 1u;
// Heads that are normed in workgroup memory at a time.
override STAGED: u32 = 1u;
// Keys per tile, and vec4s of keys: one per team.
override TILE: u32 = 16u;
override TEAMS: u32 = 4u;
// Grouped rows: lanes that accumulate the same vec4 of a head, over different keys. Single rows: RoPE pairs of vec4s that a lane holds, and the
// distance between the two vec4s of a pair. All are declared before the arrays they size: naga fails on overrides that come later.
override PARTS: u32 = 2u;
override PAIRS: u32 = 1u;
override PARTNER: u32 = 32u;
// Raw heads: whether queries and keys are normed, whether values are, and whether RoPE rotates adjacent elements.
override QK_NORM: u32 = 1u;
override V_NORM: u32 = 1u;
override ADJACENT: u32 = 0u;
//#use indexing
//#use kv_splits
//#use team
//#use kv
//#use queries
//#use rows
//#use lora_a
//#batch //#use empty_split

@group(0) @binding(4) var<storage, read_write> o: array<vec4<f32>>;

// Queries; before that, new keys and values; after that, sums to be reduced.
var<workgroup> sh_q: array<vec4<f32>, STAGED * DIM4>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let token = token_of_block(group.y);
    //#batch enter_row(token);
    let here = kv_split(group.x, token);
    //#batch if here.first >= here.end && token < run.count {
    //#batch     write_empty_split(group, lane);
    //#batch }
    if here.first >= here.end || (p.token_blocks > 0u && token >= run.count) {
        return;
    }
    var block = group.y;
    var end = group.y + 1u;
    // A token whose own key is a KV split by itself: the only token, or each batch-invariant one.
    let lone = OWN_SPLIT == 1u && group.x == 0u && (p.tokens == 1u || p.token_blocks > 0u);
    if STORES_KV && group.x == 0u && p.phase != ATTEND {
        // The workgroup that stores the new keys attends for all rows: no other workgroup may read what it writes.
        if group.y > 0u {
            lora_dot_own_value(group.y, group.z, lane);
            if group.y + 1u == p.row_blocks {
                lora_dot_own_value(0u, group.z, lane);
            }
            return;
        }
        if p.row_blocks == 1u {
            lora_dot_own_value(0u, group.z, lane);
        }
        store_new_kv(group.z, lane);
        end = select(p.row_blocks, 0u, p.phase == STORE);
    }
    if lone {
        // One workgroup scores the own key for all heads of the kv head.
        if p.phase != STORE && is_first_of_token(block) {
            attend_own_key(token, here.first, group.z, lane);
        }
        return;
    }
    for (; block < end; block++) {
        attend(rows_of_block(block, group.z), here, group.x, lane);
    }
}

const STORE: u32 = 1u;
const ATTEND: u32 = 2u;

// A block of rows of one kv head, and the end of its range of rows.
struct Rows {
    first: u32,
    end: u32,
    kv_head: u32,
}

fn token_of_block(block: u32) -> u32 {
    if p.token_blocks == 0u {
        return 0u;
    }
    return block / p.token_blocks;
}

fn is_first_of_token(block: u32) -> bool {
    if p.token_blocks == 0u {
        return block == 0u;
    }
    return block % p.token_blocks == 0u;
}

fn rows_of_block(block: u32, kv_head: u32) -> Rows {
    if p.token_blocks > 0u {
        let first = token_of_block(block) * heads_of_group();
        return Rows(first + block % p.token_blocks * ROWS, first + heads_of_group(), kv_head);
    }
    return Rows(block * ROWS, p.tokens * heads_of_group(), kv_head);
}

// Rows out of range repeat the last one and are not written.
fn row_place(rows: Rows, r: u32) -> u32 {
    return place_of(min(rows.first + r, rows.end - 1u), rows.kv_head);
}

// Offset of (largest score, sum of weights) of the rows and KV splits: after all weighted sums.
fn rows_at() -> u32 {
    return p.tokens * HEADS * SPLITS * DIM4;
}

// Stores one vec4 of a row's weighted sum over a KV split, and the row's (largest score, sum of weights) there.
fn write_dim4(row: u32, place: u32, number: u32, dim4: u32, sum: vec4<f32>, about: vec2<f32>) {
    if SPLITS == 1u {
        let live = token_of(row) < run.count;
        o[place * DIM4 + dim4] = select(vec4(0.0), sum / about.y, live);
        return;
    }
    let at = place * SPLITS + number;
    o[at * DIM4 + dim4] = sum;
    if dim4 == 0u {
        o[rows_at() + at] = vec4(about, 0.0, 0.0);
    }
}
