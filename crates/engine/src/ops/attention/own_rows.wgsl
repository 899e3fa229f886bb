// The same by matrix units for short heads: each subgroup takes 16 rows for itself, so that only keys and values are shared. Queries, keys,
// weights and values are multiplied as halves and summed in f32.
//
// Weights are relative to a row's reference, which follows its largest score only when a score outgrows it by more than GROWTH: sums are in
// registers that cannot be told apart by row, so rescaling them takes a way through workgroup memory.
// A tile of keys has as many as leave workgroup memory for a second workgroup on a processor.
// All sizes are constants of the text: naga fails where they are overrides.
override WIDTH: u32 = 64u;
override QUADS: u32 = 16u;
//#use kv_halves
//#use keys
//#use tokens
//#use head
//#use matrix

const SUBGROUP: u32 = 32u;
const ROWS: u32 = WG / SUBGROUP * 16u;
// Groups of four numbers from one row to the next: two more than there are, against bank conflicts.
const STRIDE: u32 = HEAD / 4u + 2u;
const WEIGHT_STRIDE: u32 = KEYS / 4u + 2u;
// Weights are at most e^8, far below the largest half.
const GROWTH: f32 = 8.0;
const LOG2_E: f32 = 1.442695041;

@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache: array<kv_word>;
@group(0) @binding(4) var<storage, read> v_cache: array<kv_word>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4<f32>>;

// Weights.
var<workgroup> sh_w: array<vec4<f16>, ROWS * WEIGHT_STRIDE>;
// Queries in the beginning; keys, then values.
var<workgroup> sh_x: array<vec4<f16>, KEYS * STRIDE>;
// Scores, and sums on their way.
var<workgroup> sh_y: array<f32, ROWS * KEYS>;
var<workgroup> sh_row: array<f32, WG>;
var<workgroup> sh_rescale: array<f32, ROWS>;
// Four words, so that what lies behind stays aligned: matrix units read wrong numbers where it is not.
var<workgroup> sh_grown: vec4<u32>;

// Sums of a subgroup's rows, by block of columns.
var<private> a0: Block;
var<private> a1: Block;
var<private> a2: Block;
var<private> a3: Block;
// Loaded ahead: values while scores are made, the next keys while values are added.
var<private> x0: vec4<f16>;
var<private> x1: vec4<f16>;
var<private> x2: vec4<f16>;
var<private> x3: vec4<f16>;

// What a lane weighs: every second key of one row, which sees those from `first` to before `end`.
struct Ours {
    row: u32,
    side: u32,
    first: u32,
    end: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    meet_units(id);
    let first_row = group.x * ROWS;
    let kv_head = group.y;
    let all_rows = p.tokens * heads_of_group();
    let first_token = token_of(first_row);
    let last_token = min(token_of(min(first_row + ROWS, all_rows) - 1u), live_tokens() - 1u);
    let first = seen_first(first_token);
    // A block of rows beyond the live tokens sees nothing.
    let end = select(first, last_end(first_token, last_token), first_token < live_tokens());
    let row = id / SUBGROUP * 16u + id % 16u;
    let token = token_of(min(first_row + row, all_rows - 1u));
    let ours = Ours(row, id % SUBGROUP / 16u, seen_first(token), min(seen_end(token), end));
    // What its row's weights are relative to, and their sum over this lane's keys.
    var reference = HIDDEN;
    var weights = 0.0;

    load_keys(first, end, kv_head, id);
    var q0: Left;
    var q1: Left;
    var q2: Left;
    var q3: Left;
    // As many rows of queries at a time as there is room for keys.
    for (var start = 0u; start < ROWS; start += KEYS) {
        bring_queries(first_row + start, kv_head, id);
        workgroupBarrier();
        let ours = id / SUBGROUP * 16u - start;
        if ours < KEYS {
            q0 = left_of_x(ours * STRIDE, STRIDE);
            q1 = left_of_x(ours * STRIDE + 4u, STRIDE);
            q2 = left_of_x(ours * STRIDE + 8u, STRIDE);
            q3 = left_of_x(ours * STRIDE + 12u, STRIDE);
        }
        // What comes next is written over these.
        workgroupBarrier();
    }
    for (var key = first; key < end; key += KEYS) {
        put_keys(id);
        if id == 0u {
            sh_grown = vec4(0u);
        }
        workgroupBarrier();
        load_values(key, end, kv_head, id);
        // Written out, because not every compiler unrolls loops.
        score(q0, q1, q2, q3, 0u, id);
        score(q0, q1, q2, q3, 1u, id);
        workgroupBarrier();
        put_values(id);
        load_keys(key + KEYS, end, kv_head, id);
        let most = largest_score(ours, key, id);
        if most > reference + GROWTH {
            // Lanes that write agree on what they write.
            sh_grown = vec4(1u);
        }
        var sum = weigh_all(ours, key, reference, id);
        if workgroupUniformLoad(&sh_grown).x != 0u {
            sh_row[id] = most;
            workgroupBarrier();
            let grown = max(reference, max(most, sh_row[id ^ 16u]));
            let rescale = exp(reference - grown);
            weights *= rescale;
            reference = grown;
            sh_rescale[row] = rescale;
            sum = weigh_all(ours, key, reference, id);
            workgroupBarrier();
            if key > first {
                a0 = rescaled(a0, id);
                a1 = rescaled(a1, id);
                a2 = rescaled(a2, id);
                a3 = rescaled(a3, id);
            }
        }
        weights += sum;
        add_values(0u, id);
        add_values(1u, id);
        // The next keys are written over these values.
        workgroupBarrier();
    }

    sh_row[id] = weights;
    workgroupBarrier();
    let all = sh_row[id] + sh_row[id ^ 16u];
    if ours.side == 0u && first_row + row < all_rows {
        keep_row(place_of(first_row + row, kv_head), reference, all);
    }
    sh_rescale[row] = select(0.0, 1.0 / all, token < live_tokens());
    write_block(a0, first_row, kv_head, 0u, id);
    write_block(a1, first_row, kv_head, 4u, id);
    write_block(a2, first_row, kv_head, 8u, id);
    write_block(a3, first_row, kv_head, 12u, id);
}

fn bring_queries(first_row: u32, kv_head: u32, id: u32) {
    let last_row = p.tokens * heads_of_group() - 1u;
    for (var i = id; i < KEYS * HEAD / 4u; i += WG) {
        let place = place_of(min(first_row + i / (HEAD / 4u), last_row), kv_head);
        let group = clamp(q[place * QUADS + i % (HEAD / 4u)], vec4(-65504.0), vec4(65504.0));
        sh_x[i / (HEAD / 4u) * STRIDE + i % (HEAD / 4u)] = vec4<f16>(group);
    }
}

// Where the lane's group i of a tile's keys or values begins; those behind the last one are read as the last one, which is finite.
fn group_at(i: u32, key: u32, end: u32, kv_head: u32, id: u32) -> u32 {
    let n = i * WG + id;
    return cache_at(min(key + n / (HEAD / 4u), end - 1u), kv_head) + n % (HEAD / 4u) * 4u;
}

fn load_keys(key: u32, end: u32, kv_head: u32, id: u32) {
    if key >= end {
        return;
    }
    x0 = k_halves(group_at(0u, key, end, kv_head, id));
    x1 = k_halves(group_at(1u, key, end, kv_head, id));
    x2 = k_halves(group_at(2u, key, end, kv_head, id));
    x3 = k_halves(group_at(3u, key, end, kv_head, id));
}

fn load_values(key: u32, end: u32, kv_head: u32, id: u32) {
    x0 = v_halves(group_at(0u, key, end, kv_head, id));
    x1 = v_halves(group_at(1u, key, end, kv_head, id));
    x2 = v_halves(group_at(2u, key, end, kv_head, id));
    x3 = v_halves(group_at(3u, key, end, kv_head, id));
}

fn put_keys(id: u32) {
    put_group(x0, key_place(0u, id), id);
    put_group(x1, key_place(1u, id), id);
    put_group(x2, key_place(2u, id), id);
    put_group(x3, key_place(3u, id), id);
}

fn put_values(id: u32) {
    put_group(x0, value_place(0u, id), id);
    put_group(x1, value_place(1u, id), id);
    put_group(x2, value_place(2u, id), id);
    put_group(x3, value_place(3u, id), id);
}

fn put_group(group: vec4<f16>, place: u32, id: u32) {
    sh_x[place * STRIDE + id % (HEAD / 4u)] = group;
}

// Which key of the tile the lane's group i belongs to.
fn key_place(i: u32, id: u32) -> u32 {
    return (i * WG + id) / (HEAD / 4u);
}

// Values of a block lie with those of even keys first, as their weights do.
fn value_place(i: u32, id: u32) -> u32 {
    let key = key_place(i, id);
    return key / 16u * 16u + key % 2u * 8u + key % 16u / 2u;
}

// Where a subgroup's block of scores lies.
fn block_at(block: u32, id: u32) -> u32 {
    return (id / SUBGROUP * (KEYS / 16u) + block) * 256u;
}

// Scores of the subgroup's rows with 16 keys, to workgroup memory: rows of a key together.
fn score(q0: Left, q1: Left, q2: Left, q3: Left, block: u32, id: u32) {
    let keys = block * 16u * STRIDE;
    var scores: Block;
    scores = multiply_add(q0, right(keys), scores);
    scores = multiply_add(q1, right(keys + 4u), scores);
    scores = multiply_add(q2, right(keys + 8u), scores);
    scores = multiply_add(q3, right(keys + 12u), scores);
    put_block(scores, block_at(block, id));
}

// Four scores of the lane's row, from its key number 4 i on: every second key.
fn scores4(ours: Ours, i: u32, id: u32) -> vec4<f32> {
    let at = block_at(i / 2u, id) + (i % 2u * 8u + ours.side) * 16u + id % 16u;
    return vec4(sh_y[at], sh_y[at + 32u], sh_y[at + 64u], sh_y[at + 96u]);
}

// Which of those the row sees.
fn seen4(ours: Ours, key: u32, i: u32) -> vec4<bool> {
    let keys = vec4(key + i * 8u + ours.side) + vec4(0u, 2u, 4u, 6u);
    return (keys >= vec4(ours.first)) & (keys < vec4(ours.end));
}

fn sees_all(ours: Ours, key: u32) -> bool {
    return key >= ours.first && key + KEYS <= ours.end;
}

fn largest_score(ours: Ours, key: u32, id: u32) -> f32 {
    let most = max(max(most4(ours, key, 0u, id), most4(ours, key, 1u, id)), max(most4(ours, key, 2u, id), most4(ours, key, 3u, id)));
    return max(max(most.x, most.y), max(most.z, most.w));
}

fn most4(ours: Ours, key: u32, i: u32, id: u32) -> vec4<f32> {
    let scores = scores4(ours, i, id);
    if sees_all(ours, key) {
        return scores;
    }
    return select(vec4(HIDDEN), scores, seen4(ours, key, i));
}

// Weights of all scores to workgroup memory, and their sum. Keys of a block lie there with the even ones first, and so do its values.
fn weigh_all(ours: Ours, key: u32, reference: f32, id: u32) -> f32 {
    let sum = weigh(ours, key, 0u, reference, id) + weigh(ours, key, 1u, reference, id)
        + weigh(ours, key, 2u, reference, id) + weigh(ours, key, 3u, reference, id);
    return dot(sum, vec4(1.0));
}

fn weigh(ours: Ours, key: u32, i: u32, reference: f32, id: u32) -> vec4<f32> {
    var weights = vec4<f16>(exp2((scores4(ours, i, id) - vec4(reference)) * LOG2_E));
    if !sees_all(ours, key) {
        weights = select(vec4<f16>(), weights, seen4(ours, key, i));
    }
    sh_w[ours.row * WEIGHT_STRIDE + i / 2u * 4u + ours.side * 2u + i % 2u] = weights;
    // As they are multiplied: rounded.
    return vec4<f32>(weights);
}

// Adds the values of 16 keys to the subgroup's sums.
fn add_values(block: u32, id: u32) {
    let weights = left_from(id / SUBGROUP * 16u * WEIGHT_STRIDE + block * 4u, WEIGHT_STRIDE);
    let values = block * 16u * STRIDE;
    a0 = multiply_add(weights, right_turned(values, STRIDE), a0);
    a1 = multiply_add(weights, right_turned(values + 4u, STRIDE), a1);
    a2 = multiply_add(weights, right_turned(values + 8u, STRIDE), a2);
    a3 = multiply_add(weights, right_turned(values + 12u, STRIDE), a3);
}

// A block goes through workgroup memory, where its rows can be told apart.
fn rescaled(sums: Block, id: u32) -> Block {
    let at = id / SUBGROUP * 256u;
    put_block(sums, at);
    workgroupBarrier();
    for (var i = id % SUBGROUP; i < 256u; i += SUBGROUP) {
        sh_y[at + i] *= sh_rescale[id / SUBGROUP * 16u + i % 16u];
    }
    workgroupBarrier();
    let scaled = take_block(at);
    workgroupBarrier();
    return scaled;
}

// A block's means, from quad `quad` of the rows on.
fn write_block(sums: Block, first_row: u32, kv_head: u32, quad: u32, id: u32) {
    let at = id / SUBGROUP * 256u;
    put_block(sums, at);
    workgroupBarrier();
    for (var i = id % SUBGROUP; i < 64u; i += SUBGROUP) {
        let r = id / SUBGROUP * 16u + i / 4u;
        if first_row + r < p.tokens * heads_of_group() {
            let start = at + i % 4u * 64u + i / 4u;
            let sum = vec4(sh_y[start], sh_y[start + 16u], sh_y[start + 32u], sh_y[start + 48u]);
            // Tokens that are not live give zeros, whatever their sums.
            let inverse = sh_rescale[r];
            o[place_of(first_row + r, kv_head) * QUADS + quad + i % 4u] = select(vec4(0.0), sum * inverse, inverse > 0.0);
        }
    }
    workgroupBarrier();
}
