// Flash attention with matrix units: o[row] = sum over j of softmax(q[row] . k[j]) * v[j] for ROWS rows that share a kv head. Queries, keys,
// weights and values are multiplied in f16 and accumulated in f32.
//
// A workgroup processes tiles of KEYS keys. Its subgroups share the blocks of scores, 64 elements of a head at a time; then each accumulates its
// own columns of the values for all rows. Sums are rescaled only when a row's scores exceed the reference of its weights by more than GROWTH:
// matrix registers cannot be addressed by row, so rescaling goes through workgroup memory.
// All sizes are constants in the source: naga fails if they are overrides.
override WIDTH: u32 = 64u;
override DIM4: u32 = 16u;
//#use kv_f16
//#use indexing
//#use mask
//#use tile_size
//#use matrix

const SUBGROUP: u32 = 32u;
const SUBGROUPS: u32 = WG / SUBGROUP;
const ROW_BLOCKS: u32 = ROWS / 16u;
const KEY_BLOCKS: u32 = KEYS / 16u;
// Columns of the values per subgroup.
const COLUMNS: u32 = HEAD / SUBGROUPS;
const COLUMN_BLOCKS: u32 = COLUMNS / 16u;
// Blocks of scores per subgroup: one or two.
const SCORE_BLOCKS: u32 = ROW_BLOCKS * KEY_BLOCKS / SUBGROUPS;
// vec4s of a head per step of the scores; rows are two vec4s longer, against bank conflicts.
const GROUPS: u32 = 16u;
const STRIDE: u32 = 18u;
const VALUE_STRIDE: u32 = HEAD / 4u + 2u;
// Scores that a lane converts to weights: a quarter of them in each vec4.
const EACH: u32 = ROWS * KEYS / WG;
// Weights are at most e^8, far below the largest f16.
const GROWTH: f32 = 8.0;

@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache: array<kv_word>;
@group(0) @binding(4) var<storage, read> v_cache: array<kv_word>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4<f32>>;

// Queries, then weights.
var<workgroup> sh_w: array<vec4<f16>, ROWS * STRIDE>;
// Keys, then values.
var<workgroup> sh_x: array<vec4<f16>, max(KEYS * STRIDE, VALUE_KEYS * VALUE_STRIDE)>;
// Scores, or sums to be rescaled or written.
var<workgroup> sh_y: array<f32, ROWS * KEYS>;
var<workgroup> sh_row: array<f32, WG>;
var<workgroup> sh_rescale: array<f32, ROWS>;
// Four words, so that the following arrays stay aligned: matrix units read wrong values otherwise.
var<workgroup> sh_grown: vec4<u32>;

// Sums of a subgroup, by block of rows and block of columns. Browsers allow matrices only in function variables.
struct Sums {
    a0: Block,
    a1: Block,
    a2: Block,
    a3: Block,
    b0: Block,
    b1: Block,
    b2: Block,
    b3: Block,
    c0: Block,
    c1: Block,
    d0: Block,
    d1: Block,
}

// The rows and keys of a workgroup.
struct Tile {
    first_row: u32,
    kv_head: u32,
    // The tile's first key and the number of its live keys.
    key: u32,
    live: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    //#batch enter_row(0u);
    init_units(id);
    var sums: Sums;
    let first_row = group.x * ROWS;
    let kv_head = group.y;
    let all_rows = p.tokens * heads_of_group();
    let first_token = token_of(first_row);
    let last_token = min(token_of(min(first_row + ROWS, all_rows) - 1u), live_tokens() - 1u);
    let first = seen_first(first_token);
    // A block of rows beyond the live tokens sees nothing.
    let end = select(first, last_end(first_token, last_token), first_token < live_tokens());

    // This lane computes the weights of EACH keys of one row, which sees positions x to before y.
    let my_row = id % ROWS;
    let my_key = id / ROWS * EACH;
    let token = token_of(min(first_row + my_row, all_rows - 1u));
    let sees = vec2(seen_first(token), seen_end(token));
    // The reference score of the row's weights, and their sum over this lane's keys.
    var reference = MASKED;
    var weights = 0.0;

    for (var key = first; key < end; key += KEYS) {
        let tile = Tile(first_row, kv_head, key, min(KEYS, end - key));
        score(tile, id);
        if id == 0u {
            sh_grown = vec4(0u);
        }
        workgroupBarrier();
        let s0 = scores4(tile, sees, my_row, my_key);
        let s1 = scores4(tile, sees, my_row, my_key + 4u);
        let s2 = scores4(tile, sees, my_row, my_key + 8u % EACH);
        let s3 = scores4(tile, sees, my_row, my_key + 12u % EACH);
        let most4 = max(max(s0, s1), max(s2, s3));
        sh_row[id] = max(max(most4.x, most4.y), max(most4.z, most4.w));
        workgroupBarrier();
        let most = row_most(my_row);
        if most > reference + GROWTH {
            // All writing lanes store the same value.
            sh_grown = vec4(1u);
        }
        if workgroupUniformLoad(&sh_grown).x != 0u {
            let grown = max(reference, most);
            let rescale = exp(reference - grown);
            weights *= rescale;
            reference = grown;
            if id < ROWS {
                sh_rescale[id] = rescale;
            }
            workgroupBarrier();
            if key > first {
                rescale_all(&sums, id);
            }
        }
        let w0 = weigh(s0, reference);
        let w1 = weigh(s1, reference);
        var sum = vec4<f32>(w0) + vec4<f32>(w1);
        let at = my_row * STRIDE + my_key / 4u;
        sh_w[at] = w0;
        sh_w[at + 1u] = w1;
        if EACH > 8u {
            let w2 = weigh(s2, reference);
            let w3 = weigh(s3, reference);
            sum += vec4<f32>(w2) + vec4<f32>(w3);
            sh_w[at + 2u] = w2;
            sh_w[at + 3u] = w3;
        }
        weights += dot(sum, vec4(1.0));
        add_values(&sums, tile, id);
    }

    sh_row[id] = weights;
    workgroupBarrier();
    if id < ROWS && first_row + id < all_rows {
        keep_row(place_of(first_row + id, kv_head), reference, row_sum(id));
    }
    write_all(&sums, first_row, kv_head, id);
}

// Writes the scores of a tile to workgroup memory, block by block, key-major with 16 rows each.
fn score(tile: Tile, id: u32) {
    let block = id / SUBGROUP * SCORE_BLOCKS;
    let row = block / KEY_BLOCKS * 16u * STRIDE;
    let key = block % KEY_BLOCKS * 16u * STRIDE;
    var scores: Block;
    var more: Block;
    for (var start = 0u; start < DIM4; start += GROUPS) {
        load_queries(tile.first_row, tile.kv_head, start, id);
        load_keys(tile, start, id);
        workgroupBarrier();
        let q0 = left(row + 0u);
        scores = multiply_add(q0, right(key + 0u), scores);
        if SCORE_BLOCKS > 1u {
            more = multiply_add(q0, right(key + 16u * STRIDE + 0u), more);
        }
        let q4 = left(row + 4u);
        scores = multiply_add(q4, right(key + 4u), scores);
        if SCORE_BLOCKS > 1u {
            more = multiply_add(q4, right(key + 16u * STRIDE + 4u), more);
        }
        let q8 = left(row + 8u);
        scores = multiply_add(q8, right(key + 8u), scores);
        if SCORE_BLOCKS > 1u {
            more = multiply_add(q8, right(key + 16u * STRIDE + 8u), more);
        }
        let q12 = left(row + 12u);
        scores = multiply_add(q12, right(key + 12u), scores);
        if SCORE_BLOCKS > 1u {
            more = multiply_add(q12, right(key + 16u * STRIDE + 12u), more);
        }
        // The next loads overwrite these.
        workgroupBarrier();
    }
    stage_block(scores, block * 256u);
    if SCORE_BLOCKS > 1u {
        stage_block(more, block * 256u + 256u);
    }
}

fn load_queries(first_row: u32, kv_head: u32, start: u32, id: u32) {
    let last_row = p.tokens * heads_of_group() - 1u;
    for (var i = id; i < ROWS * GROUPS; i += WG) {
        let place = place_of(min(first_row + i / GROUPS, last_row), kv_head);
        sh_w[i / GROUPS * STRIDE + i % GROUPS] = to_f16(q[place * DIM4 + start + i % GROUPS]);
    }
}

// All loads are issued before the first is used.
fn load_keys(tile: Tile, start: u32, id: u32) {
    let k0 = key_group(tile, start, id, 0u);
    let k1 = key_group(tile, start, id, 1u);
    let k2 = key_group(tile, start, id, 2u);
    let k3 = key_group(tile, start, id, 3u);
    let k4 = key_group(tile, start, id, 4u);
    let k5 = key_group(tile, start, id, 5u);
    let k6 = key_group(tile, start, id, 6u);
    let k7 = key_group(tile, start, id, 7u);
    put_key(k0, id, 0u);
    put_key(k1, id, 1u);
    put_key(k2, id, 2u);
    put_key(k3, id, 3u);
    put_key(k4, id, 4u);
    put_key(k5, id, 5u);
    put_key(k6, id, 6u);
    put_key(k7, id, 7u);
}

fn key_group(tile: Tile, start: u32, id: u32, i: u32) -> vec4<f16> {
    if i * WG >= KEYS * GROUPS {
        return vec4<f16>();
    }
    let n = i * WG + id;
    let key = tile.key + min(n / GROUPS, tile.live - 1u);
    return k_f16(cache_at(key, tile.kv_head) + (start + n % GROUPS) * 4u);
}

fn put_key(group: vec4<f16>, id: u32, i: u32) {
    if i * WG < KEYS * GROUPS {
        let n = i * WG + id;
        sh_x[n / GROUPS * STRIDE + n % GROUPS] = group;
    }
}

// Four scores of a row, masked where it does not see the key.
fn scores4(tile: Tile, sees: vec2<u32>, row: u32, key: u32) -> vec4<f32> {
    let at = (row / 16u * KEY_BLOCKS + key / 16u) * 256u + key % 16u * 16u + row % 16u;
    let scores = vec4(sh_y[at], sh_y[at + 16u], sh_y[at + 32u], sh_y[at + 48u]);
    let offset = vec4(key) + vec4(0u, 1u, 2u, 3u);
    let keys = vec4(tile.key) + offset;
    let seen = (keys >= vec4(sees.x)) & (keys < vec4(sees.y)) & (offset < vec4(tile.live));
    return select(vec4(MASKED), scores, seen);
}

// The largest score of a row in this tile, over its lanes.
fn row_most(row: u32) -> f32 {
    var most = sh_row[row];
    for (var i = row + ROWS; i < WG; i += ROWS) {
        most = max(most, sh_row[i]);
    }
    return most;
}

// Sum of a row's weights over its lanes.
fn row_sum(row: u32) -> f32 {
    var sum = 0.0;
    for (var i = row; i < WG; i += ROWS) {
        sum += sh_row[i];
    }
    return sum;
}

// Rounded to f16, as they are multiplied.
fn weigh(scores: vec4<f32>, reference: f32) -> vec4<f16> {
    return vec4<f16>(select(exp(scores - vec4(reference)), vec4(0.0), scores <= vec4(MASKED)));
}

// Accumulates a tile's values, VALUE_KEYS keys at a time.
fn add_values(sums: ptr<function, Sums>, tile: Tile, id: u32) {
    let column = id / SUBGROUP * COLUMNS / 4u;
    for (var start = 0u; start < KEYS; start += VALUE_KEYS) {
        load_values(tile, start, id);
        workgroupBarrier();
        multiply(sums, start / 4u, column);
        if VALUE_KEYS > 16u {
            multiply(sums, start / 4u + 4u, 16u * VALUE_STRIDE + column);
        }
        // The next loads overwrite these.
        workgroupBarrier();
    }
}

fn load_values(tile: Tile, start: u32, id: u32) {
    let v0 = value_group(tile, start, id, 0u);
    let v1 = value_group(tile, start, id, 1u);
    let v2 = value_group(tile, start, id, 2u);
    let v3 = value_group(tile, start, id, 3u);
    let v4 = value_group(tile, start, id, 4u);
    let v5 = value_group(tile, start, id, 5u);
    let v6 = value_group(tile, start, id, 6u);
    let v7 = value_group(tile, start, id, 7u);
    put_value(v0, id, 0u);
    put_value(v1, id, 1u);
    put_value(v2, id, 2u);
    put_value(v3, id, 3u);
    put_value(v4, id, 4u);
    put_value(v5, id, 5u);
    put_value(v6, id, 6u);
    put_value(v7, id, 7u);
}

// Keys out of range have weight 0 and are clamped to the last one, which is finite.
fn value_group(tile: Tile, start: u32, id: u32, i: u32) -> vec4<f16> {
    if i * WG >= VALUE_KEYS * HEAD / 4u {
        return vec4<f16>();
    }
    let n = i * WG + id;
    let key = tile.key + min(start + n / (HEAD / 4u), tile.live - 1u);
    return v_f16(cache_at(key, tile.kv_head) + n % (HEAD / 4u) * 4u);
}

fn put_value(group: vec4<f16>, id: u32, i: u32) {
    if i * WG < VALUE_KEYS * HEAD / 4u {
        let n = i * WG + id;
        sh_x[n / (HEAD / 4u) * VALUE_STRIDE + n % (HEAD / 4u)] = group;
    }
}

// Accumulates the values of 16 keys into this subgroup's sums.
fn multiply(sums: ptr<function, Sums>, weights: u32, values: u32) {
    let upper = left(weights);
    let lower = left(weights + 16u * STRIDE);
    let v0 = right_transposed(values, VALUE_STRIDE);
    (*sums).a0 = multiply_add(upper, v0, (*sums).a0);
    (*sums).b0 = multiply_add(lower, v0, (*sums).b0);
    if COLUMN_BLOCKS > 1u {
        let v1 = right_transposed(values + 4u, VALUE_STRIDE);
        (*sums).a1 = multiply_add(upper, v1, (*sums).a1);
        (*sums).b1 = multiply_add(lower, v1, (*sums).b1);
        if ROW_BLOCKS > 2u {
            (*sums).c1 = multiply_add(left(weights + 32u * STRIDE), v1, (*sums).c1);
            (*sums).d1 = multiply_add(left(weights + 48u * STRIDE), v1, (*sums).d1);
        }
    }
    if COLUMN_BLOCKS > 2u {
        let v2 = right_transposed(values + 8u, VALUE_STRIDE);
        (*sums).a2 = multiply_add(upper, v2, (*sums).a2);
        (*sums).b2 = multiply_add(lower, v2, (*sums).b2);
        let v3 = right_transposed(values + 12u, VALUE_STRIDE);
        (*sums).a3 = multiply_add(upper, v3, (*sums).a3);
        (*sums).b3 = multiply_add(lower, v3, (*sums).b3);
    }
    if ROW_BLOCKS > 2u {
        (*sums).c0 = multiply_add(left(weights + 32u * STRIDE), v0, (*sums).c0);
        (*sums).d0 = multiply_add(left(weights + 48u * STRIDE), v0, (*sums).d0);
    }
}

fn rescale_all(sums: ptr<function, Sums>, id: u32) {
    (*sums).a0 = rescaled((*sums).a0, 0u, id);
    (*sums).b0 = rescaled((*sums).b0, 16u, id);
    if COLUMN_BLOCKS > 1u {
        (*sums).a1 = rescaled((*sums).a1, 0u, id);
        (*sums).b1 = rescaled((*sums).b1, 16u, id);
        if ROW_BLOCKS > 2u {
            (*sums).c1 = rescaled((*sums).c1, 32u, id);
            (*sums).d1 = rescaled((*sums).d1, 48u, id);
        }
    }
    if COLUMN_BLOCKS > 2u {
        (*sums).a2 = rescaled((*sums).a2, 0u, id);
        (*sums).b2 = rescaled((*sums).b2, 16u, id);
        (*sums).a3 = rescaled((*sums).a3, 0u, id);
        (*sums).b3 = rescaled((*sums).b3, 16u, id);
    }
    if ROW_BLOCKS > 2u {
        (*sums).c0 = rescaled((*sums).c0, 32u, id);
        (*sums).d0 = rescaled((*sums).d0, 48u, id);
    }
}

// Rescales a block through workgroup memory, which can be addressed by row; `row` is its first.
fn rescaled(sums: Block, row: u32, id: u32) -> Block {
    let at = id / SUBGROUP * 256u;
    stage_block(sums, at);
    workgroupBarrier();
    for (var i = id % SUBGROUP; i < 256u; i += SUBGROUP) {
        sh_y[at + i] *= sh_rescale[row + i % 16u];
    }
    workgroupBarrier();
    let scaled = read_block(at);
    workgroupBarrier();
    return scaled;
}

fn write_all(sums: ptr<function, Sums>, first_row: u32, kv_head: u32, id: u32) {
    write_block((*sums).a0, vec4(first_row, 0u, kv_head, 0u), id);
    write_block((*sums).b0, vec4(first_row, 16u, kv_head, 0u), id);
    if COLUMN_BLOCKS > 1u {
        write_block((*sums).a1, vec4(first_row, 0u, kv_head, 4u), id);
        write_block((*sums).b1, vec4(first_row, 16u, kv_head, 4u), id);
        if ROW_BLOCKS > 2u {
            write_block((*sums).c1, vec4(first_row, 32u, kv_head, 4u), id);
            write_block((*sums).d1, vec4(first_row, 48u, kv_head, 4u), id);
        }
    }
    if COLUMN_BLOCKS > 2u {
        write_block((*sums).a2, vec4(first_row, 0u, kv_head, 8u), id);
        write_block((*sums).b2, vec4(first_row, 16u, kv_head, 8u), id);
        write_block((*sums).a3, vec4(first_row, 0u, kv_head, 12u), id);
        write_block((*sums).b3, vec4(first_row, 16u, kv_head, 12u), id);
    }
    if ROW_BLOCKS > 2u {
        write_block((*sums).c0, vec4(first_row, 32u, kv_head, 0u), id);
        write_block((*sums).d0, vec4(first_row, 48u, kv_head, 0u), id);
    }
}

// Writes a block's output; `place` holds the workgroup's first row, the block's first row among those, the kv head and the block's first vec4
// among this subgroup's columns.
fn write_block(sums: Block, place: vec4<u32>, id: u32) {
    let at = id / SUBGROUP * 256u;
    stage_block(sums, at);
    workgroupBarrier();
    let dim4 = id / SUBGROUP * COLUMNS / 4u + place.w;
    for (var i = id % SUBGROUP; i < 64u; i += SUBGROUP) {
        let r = place.y + i / 4u;
        let row = place.x + r;
        if row < p.tokens * heads_of_group() {
            let start = at + i % 4u * 64u + i / 4u;
            let sum = vec4(sh_y[start], sh_y[start + 16u], sh_y[start + 32u], sh_y[start + 48u]);
            let mean = select(vec4(0.0), sum / row_sum(r), token_of(row) < live_tokens());
            o[place_of(row, place.z) * DIM4 + dim4 + i % 4u] = mean;
        }
    }
    workgroupBarrier();
}
