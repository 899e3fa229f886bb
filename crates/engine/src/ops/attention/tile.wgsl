// o[row] = sum over j of softmax(q[row] . k[j]) * v[j]     for ROWS rows that share a kv head
// One workgroup per block of rows and kv head. Keys come in tiles of KEYS; queries and keys are staged STAGE quads of a head at
// a time, scores become weights in workgroup memory, and each lane sums its quad of the values for some of the rows.
override WIDTH: u32 = 256u;
override QUADS: u32 = 64u;
override STAGE: u32 = 4u;
//#use kv
//#use keys
//#use tokens

const WG: u32 = 256u;
const ROWS: u32 = 32u;
const KEYS: u32 = 64u;
// A row of scores in quads of keys.
const KEY_QUADS: u32 = 16u;
// Lanes that weigh one row.
const LANES: u32 = 8u;
// Local arrays cannot be sized by an override; heads of 512 take this many.
const MOST_SUMS: u32 = 16u;

@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache: array<kv_word>;
@group(0) @binding(4) var<storage, read> v_cache: array<kv_word>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4<f32>>;

var<workgroup> sh_score: array<vec4<f32>, ROWS * KEY_QUADS>;
var<workgroup> sh_row: array<f32, ROWS * LANES>;
var<workgroup> sh_rescale: array<f32, ROWS>;
var<workgroup> sh_q: array<vec4<f32>, ROWS * STAGE>;
var<workgroup> sh_k: array<vec4<f32>, KEYS * STAGE>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    let first_row = group.x * ROWS;
    let kv_head = group.y;
    let all_rows = p.tokens * heads_of_group();
    let first_token = token_of(first_row);
    let last_token = min(token_of(min(first_row + ROWS, all_rows) - 1u), live_tokens() - 1u);
    let first = first_key(first_position() + first_token);
    // A block of rows beyond the live tokens sees nothing.
    let end = select(first, last_end(first_token, last_token), first_token < live_tokens());

    // What this lane sums: one quad of the head for `each` rows.
    let groups = min(WG / QUADS, ROWS);
    let each = (ROWS + groups - 1u) / groups;
    let quad = id % QUADS;
    let my_row = id / QUADS * each;
    var sums: array<vec4<f32>, MOST_SUMS>;
    for (var i = 0u; i < each; i++) {
        sums[i] = vec4(0.0);
    }
    // What this lane weighs: some keys of one row, which sees those from x to y.
    let token = token_of(min(first_row + id / LANES, all_rows - 1u));
    let sees = vec2(first_key(first_position() + token), seen_end(token));
    var largest = HIDDEN;
    var weights = 0.0;

    for (var tile = first; tile < end; tile += KEYS) {
        let live = min(KEYS, end - tile);
        score(tile, live, first_row, kv_head, id);
        workgroupBarrier();

        let low = masked(sees, tile, live, id, 0u);
        let high = masked(sees, tile, live, id, 1u);
        let most4 = max(low, high);
        sh_row[id] = max(max(most4.x, most4.y), max(most4.z, most4.w));
        workgroupBarrier();
        var most = largest;
        for (var i = 0u; i < LANES; i++) {
            most = max(most, sh_row[id / LANES * LANES + i]);
        }
        let w0 = weigh(low, most);
        let w1 = weigh(high, most);
        sh_score[id / LANES * KEY_QUADS + id % LANES] = w0;
        sh_score[id / LANES * KEY_QUADS + id % LANES + LANES] = w1;
        let rescale = exp(largest - most);
        weights = weights * rescale + dot(w0 + w1, vec4(1.0));
        largest = most;
        if id % LANES == 0u {
            sh_rescale[id / LANES] = rescale;
        }
        workgroupBarrier();

        if my_row < ROWS {
            for (var i = 0u; i < each; i++) {
                sums[i] *= sh_rescale[min(my_row + i, ROWS - 1u)];
            }
            for (var i = 0u; i < live; i += 4u) {
                // Keys behind the last one weigh nothing; they are read as the last one, which is finite.
                let last = live - 1u;
                let v_0 = v4(cache_at(tile + i, kv_head) + quad * 4u);
                let v_1 = v4(cache_at(tile + min(i + 1u, last), kv_head) + quad * 4u);
                let v_2 = v4(cache_at(tile + min(i + 2u, last), kv_head) + quad * 4u);
                let v_3 = v4(cache_at(tile + min(i + 3u, last), kv_head) + quad * 4u);
                for (var r = 0u; r < each; r++) {
                    let w = sh_score[min(my_row + r, ROWS - 1u) * KEY_QUADS + i / 4u];
                    sums[r] += w.x * v_0 + w.y * v_1 + w.z * v_2 + w.w * v_3;
                }
            }
        }
        workgroupBarrier();
    }

    sh_row[id] = weights;
    workgroupBarrier();
    if id % LANES == 0u && first_row + id / LANES < all_rows {
        keep_row(place_of(first_row + id / LANES, kv_head), largest, row_sum(id / LANES));
    }
    if my_row >= ROWS {
        return;
    }
    for (var i = 0u; i < each; i++) {
        let row = first_row + my_row + i;
        if my_row + i < ROWS && row < all_rows {
            let mean = sums[i] / row_sum(my_row + i);
            o[place_of(row, kv_head) * QUADS + quad] = select(vec4(0.0), mean, token_of(row) < live_tokens());
        }
    }
}

// Sum of a row's weights, from those of its lanes.
fn row_sum(row: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < LANES; i++) {
        sum += sh_row[row * LANES + i];
    }
    return sum;
}

// Scores of a tile. A lane makes four neighbouring keys of rows r and r + 16.
fn score(tile: u32, live: u32, first_row: u32, kv_head: u32, id: u32) {
    let r = id / KEY_QUADS;
    let k = id % KEY_QUADS;
    var low = vec4(0.0);
    var high = vec4(0.0);
    for (var start = 0u; start < QUADS; start += STAGE) {
        stage(start, tile, live, first_row, kv_head, id);
        workgroupBarrier();
        for (var i = 0u; i < STAGE; i++) {
            let a = sh_q[i * ROWS + r];
            let b = sh_q[i * ROWS + r + 16u];
            let k_0 = sh_k[i * KEYS + k];
            let k_1 = sh_k[i * KEYS + k + KEY_QUADS];
            let k_2 = sh_k[i * KEYS + k + 2u * KEY_QUADS];
            let k_3 = sh_k[i * KEYS + k + 3u * KEY_QUADS];
            low += vec4(dot(a, k_0), dot(a, k_1), dot(a, k_2), dot(a, k_3));
            high += vec4(dot(b, k_0), dot(b, k_1), dot(b, k_2), dot(b, k_3));
        }
        workgroupBarrier();
    }
    sh_score[r * KEY_QUADS + k] = low;
    sh_score[(r + 16u) * KEY_QUADS + k] = high;
}

// Brings STAGE quads of the block's queries and the tile's keys. Key 4a + b lies at b * 16 + a: lanes then read neighbours.
fn stage(start: u32, tile: u32, live: u32, first_row: u32, kv_head: u32, id: u32) {
    let last_row = p.tokens * heads_of_group() - 1u;
    for (var i = id; i < ROWS * STAGE; i += WG) {
        let place = place_of(min(first_row + i / STAGE, last_row), kv_head);
        sh_q[i % STAGE * ROWS + i / STAGE] = q[place * QUADS + start + i % STAGE];
    }
    for (var i = id; i < KEYS * STAGE; i += WG) {
        let key = i / STAGE;
        let at = cache_at(tile + min(key, live - 1u), kv_head) + (start + i % STAGE) * 4u;
        sh_k[i % STAGE * KEYS + key % 4u * KEY_QUADS + key / 4u] = k4(at);
    }
}

// Four scores of this lane's row, hidden where the row does not see the key.
fn masked(sees: vec2<u32>, tile: u32, live: u32, id: u32, part: u32) -> vec4<f32> {
    let at = id % LANES + part * LANES;
    let scores = sh_score[id / LANES * KEY_QUADS + at];
    let offset = vec4(at * 4u) + vec4(0u, 1u, 2u, 3u);
    let keys = vec4(tile) + offset;
    let seen = (keys >= vec4(sees.x)) & (keys < vec4(sees.y)) & (offset < vec4(live));
    return select(vec4(HIDDEN), scores, seen);
}

fn weigh(scores: vec4<f32>, most: f32) -> vec4<f32> {
    return select(exp(scores - vec4(most)), vec4(0.0), scores <= vec4(HIDDEN));
}
