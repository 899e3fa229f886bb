// o[row] = sum over j of softmax(q[row] . k[j]) * v[j]     for ROWS rows that share a kv head
// One workgroup per block of rows and kv head. Keys are processed in tiles of KEYS; queries and keys are staged STAGE vec4s of a head at a time,
// scores become weights in workgroup memory, and each lane accumulates its vec4 of the values for some of the rows.
override WIDTH: u32 = 256u;
override DIM4: u32 = 64u;
override STAGE: u32 = 4u;
// Rows per lane; a lane accumulates one vec4 of the values for each.
override EACH: u32 = 8u;
//#use kv
//#use indexing
//#use mask
//#use weighted_sums

const WG: u32 = 256u;
const ROWS: u32 = 32u;
const KEYS: u32 = 64u;
// vec4s of keys in a row of scores.
const KEYS4: u32 = 16u;
// Lanes that compute the weights of one row.
const LANES: u32 = 8u;

@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache: array<kv_word>;
@group(0) @binding(4) var<storage, read> v_cache: array<kv_word>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4<f32>>;

var<workgroup> sh_score: array<vec4<f32>, ROWS * KEYS4>;
var<workgroup> sh_row: array<f32, ROWS * LANES>;
var<workgroup> sh_rescale: array<f32, ROWS>;
var<workgroup> sh_q: array<vec4<f32>, ROWS * STAGE>;
var<workgroup> sh_k: array<vec4<f32>, KEYS * STAGE>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    //#batch enter_row(0u);
    let first_row = group.x * ROWS;
    let kv_head = group.y;
    let all_rows = p.tokens * heads_of_group();
    let first_token = token_of(first_row);
    let last_token = min(token_of(min(first_row + ROWS, all_rows) - 1u), live_tokens() - 1u);
    let first = seen_first(first_token);
    // A block of rows beyond the live tokens sees nothing.
    let end = select(first, last_end(first_token, last_token), first_token < live_tokens());

    // This lane accumulates one vec4 of the head for EACH rows, at most 16.
    let dim4 = id % DIM4;
    let my_row = id / DIM4 * EACH;
    var sums_0 = mat4x4<f32>();
    var sums_4 = mat4x4<f32>();
    var sums_8 = mat4x4<f32>();
    var sums_12 = mat4x4<f32>();
    // This lane computes the weights of some keys of one row, which sees positions x to before y.
    let token = token_of(min(first_row + id / LANES, all_rows - 1u));
    let sees = vec2(seen_first(token), seen_end(token));
    var largest = MASKED;
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
        sh_score[id / LANES * KEYS4 + id % LANES] = w0;
        sh_score[id / LANES * KEYS4 + id % LANES + LANES] = w1;
        let rescale = exp(largest - most);
        weights = weights * rescale + dot(w0 + w1, vec4(1.0));
        largest = most;
        if id % LANES == 0u {
            sh_rescale[id / LANES] = rescale;
        }
        workgroupBarrier();

        if my_row < ROWS {
            sums_0 = rescaled(sums_0, my_row, 0u);
            sums_4 = rescaled(sums_4, my_row, 4u);
            sums_8 = rescaled(sums_8, my_row, 8u);
            sums_12 = rescaled(sums_12, my_row, 12u);
            for (var i = 0u; i < live; i += 4u) {
                let values = values16(tile, live, i, kv_head, dim4);
                sums_0 = weighted16(sums_0, my_row, 0u, i, values);
                sums_4 = weighted16(sums_4, my_row, 4u, i, values);
                sums_8 = weighted16(sums_8, my_row, 8u, i, values);
                sums_12 = weighted16(sums_12, my_row, 12u, i, values);
            }
        }
        workgroupBarrier();
    }

    sh_row[id] = weights;
    workgroupBarrier();
    if id % LANES == 0u && first_row + id / LANES < all_rows {
        keep_row(place_of(first_row + id / LANES, kv_head), largest, row_sum(id / LANES));
    }
    if my_row < ROWS {
        let place = Place(first_row, my_row, kv_head, dim4);
        write16(place, 0u, sums_0);
        write16(place, 4u, sums_4);
        write16(place, 8u, sums_8);
        write16(place, 12u, sums_12);
    }
}

// A lane's sums of four rows, starting with its row `i`. The functions below are unrolled by hand for four rows: compilers do not unroll
// loops with bounds checks, and spill registers that a loop indexes.
fn rescaled(sums: mat4x4<f32>, my_row: u32, i: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        rescaled4(sums[0], my_row, i),
        rescaled4(sums[1], my_row, i + 1u),
        rescaled4(sums[2], my_row, i + 2u),
        rescaled4(sums[3], my_row, i + 3u),
    );
}

fn rescaled4(sums: vec4<f32>, my_row: u32, i: u32) -> vec4<f32> {
    if i >= EACH {
        return sums;
    }
    return sums * sh_rescale[min(my_row + i, ROWS - 1u)];
}

// One vec4 of four values. Keys out of range have weight 0 and are clamped to the last one, which is finite.
fn values16(tile: u32, live: u32, i: u32, kv_head: u32, dim4: u32) -> mat4x4<f32> {
    let keys = vec4(tile) + min(vec4(i) + vec4(0u, 1u, 2u, 3u), vec4(live - 1u));
    return mat4x4<f32>(
        v4(cache_at(keys.x, kv_head) + dim4 * 4u),
        v4(cache_at(keys.y, kv_head) + dim4 * 4u),
        v4(cache_at(keys.z, kv_head) + dim4 * 4u),
        v4(cache_at(keys.w, kv_head) + dim4 * 4u),
    );
}

// Where a lane stores its results.
struct Place {
    first_row: u32,
    my_row: u32,
    kv_head: u32,
    dim4: u32,
}

fn write16(place: Place, i: u32, sums: mat4x4<f32>) {
    write4(place, i, sums[0]);
    write4(place, i + 1u, sums[1]);
    write4(place, i + 2u, sums[2]);
    write4(place, i + 3u, sums[3]);
}

fn write4(place: Place, i: u32, sum: vec4<f32>) {
    let r = place.my_row + i;
    let row = place.first_row + r;
    if i < EACH && r < ROWS && row < p.tokens * heads_of_group() {
        let mean = select(vec4(0.0), sum / row_sum(r), token_of(row) < live_tokens());
        o[place_of(row, place.kv_head) * DIM4 + place.dim4] = mean;
    }
}

// Sum of a row's weights over its lanes.
fn row_sum(row: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < LANES; i++) {
        sum += sh_row[row * LANES + i];
    }
    return sum;
}

// Scores of a tile. A lane computes four adjacent keys of rows r and r + 16.
fn score(tile: u32, live: u32, first_row: u32, kv_head: u32, id: u32) {
    let r = id / KEYS4;
    let k = id % KEYS4;
    var low = vec4(0.0);
    var high = vec4(0.0);
    for (var start = 0u; start < DIM4; start += STAGE) {
        stage(start, tile, live, first_row, kv_head, id);
        workgroupBarrier();
        for (var i = 0u; i < STAGE; i++) {
            let a = sh_q[i * ROWS + r];
            let b = sh_q[i * ROWS + r + 16u];
            let k_0 = sh_k[i * KEYS + k];
            let k_1 = sh_k[i * KEYS + k + KEYS4];
            let k_2 = sh_k[i * KEYS + k + 2u * KEYS4];
            let k_3 = sh_k[i * KEYS + k + 3u * KEYS4];
            let keys = transposed(k_0, k_1, k_2, k_3);
            low = dots(low, a, keys);
            high = dots(high, b, keys);
        }
        workgroupBarrier();
    }
    sh_score[r * KEYS4 + k] = low;
    sh_score[(r + 16u) * KEYS4 + k] = high;
}

// Loads STAGE vec4s of the block's queries and the tile's keys. Key 4a + b is stored at b * 16 + a, so that adjacent lanes read adjacent vec4s.
fn stage(start: u32, tile: u32, live: u32, first_row: u32, kv_head: u32, id: u32) {
    let last_row = p.tokens * heads_of_group() - 1u;
    for (var i = id; i < ROWS * STAGE; i += WG) {
        let place = place_of(min(first_row + i / STAGE, last_row), kv_head);
        sh_q[i % STAGE * ROWS + i / STAGE] = q[place * DIM4 + start + i % STAGE];
    }
    for (var i = id; i < KEYS * STAGE; i += WG) {
        let key = i / STAGE;
        let at = cache_at(tile + min(key, live - 1u), kv_head) + (start + i % STAGE) * 4u;
        sh_k[i % STAGE * KEYS + key % 4u * KEYS4 + key / 4u] = k4(at);
    }
}

// Four scores of this lane's row, masked where the row does not see the key.
fn masked(sees: vec2<u32>, tile: u32, live: u32, id: u32, part: u32) -> vec4<f32> {
    let at = id % LANES + part * LANES;
    let scores = sh_score[id / LANES * KEYS4 + at];
    let offset = vec4(at * 4u) + vec4(0u, 1u, 2u, 3u);
    let keys = vec4(tile) + offset;
    let seen = (keys >= vec4(sees.x)) & (keys < vec4(sees.y)) & (offset < vec4(live));
    return select(vec4(MASKED), scores, seen);
}

fn weigh(scores: vec4<f32>, most: f32) -> vec4<f32> {
    return select(exp(scores - vec4(most)), vec4(0.0), scores <= vec4(MASKED));
}
