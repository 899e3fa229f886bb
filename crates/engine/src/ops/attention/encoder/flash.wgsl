// o[t, h, :] = sum over live tokens s of weight(t, s) * v[s, h, :] / sum of the weights, weight(t, s) = e^(q[t, h, :] . k[s, h, :] - m);
// bidirectional attention without matrix units, 64 rows of a head in a workgroup of 64 lanes, 32 keys at a time
//
// Eight lanes share eight rows: a lane computes their scores with four keys, then their sums for LANE_DIM4 vec4s of the head, all in
// registers. Four vec4s at a time are staged in workgroup memory: first queries and keys, then weights (in the memory of the queries) and
// values (in that of the keys). The next step is prefetched before this one is multiplied. Indices other than the lane's are constants, so
// that bounds checks vanish; everything is unrolled by hand, because compilers spill registers that a loop indexes.
override DIM4: u32 = 16u;
// vec4s of a head that a lane accumulates; those of eight lanes cover DIM4: two for heads of 64, three for heads of 72.
override LANE_DIM4: u32 = 2u;
//#use lanes
//#use buffers

struct Params {
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    // Strides in vec4s between tokens and between heads, of queries, then of keys and values.
    q_token: u32,
    q_head: u32,
    k_token: u32,
    k_head: u32,
    // The first vec4 of the keys and of the values.
    k_first: u32,
    v_first: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

const ROWS: u32 = 64u;
const KEYS: u32 = 32u;
// vec4s of queries and keys per step, and keys per step of values.
const STEP: u32 = 4u;
const STEP_KEYS: u32 = 16u;
// The score of a key that is not live.
const MASKED: f32 = -3.0e38;
const LOG2_E: f32 = 1.442695041;

// Queries, indexed by the lane's row, vec4 of the step and lane of the rows; or weights, by row, vec4 of keys and lane. One lane more than
// used, against bank conflicts.
var<workgroup> sh_rows: array<array<array<vec4<f32>, 9>, 4>, 8>;
// Keys, indexed by the lane's key, vec4 of the step and lane; or values, by vec4 of keys and vec4 of the lane, key in the vec4, and lane.
var<workgroup> sh_others: array<array<array<vec4<f32>, 9>, 4>, 4u * LANE_DIM4>;

// Scores of the lane's eight rows with its four keys, then weights.
var<private> s0: vec4<f32>;
var<private> s1: vec4<f32>;
var<private> s2: vec4<f32>;
var<private> s3: vec4<f32>;
var<private> s4: vec4<f32>;
var<private> s5: vec4<f32>;
var<private> s6: vec4<f32>;
var<private> s7: vec4<f32>;
// Accumulated values of the rows: the first, second and third vec4 of the lane.
var<private> a0: vec4<f32>;
var<private> a1: vec4<f32>;
var<private> a2: vec4<f32>;
var<private> a3: vec4<f32>;
var<private> a4: vec4<f32>;
var<private> a5: vec4<f32>;
var<private> a6: vec4<f32>;
var<private> a7: vec4<f32>;
var<private> b0: vec4<f32>;
var<private> b1: vec4<f32>;
var<private> b2: vec4<f32>;
var<private> b3: vec4<f32>;
var<private> b4: vec4<f32>;
var<private> b5: vec4<f32>;
var<private> b6: vec4<f32>;
var<private> b7: vec4<f32>;
var<private> c0: vec4<f32>;
var<private> c1: vec4<f32>;
var<private> c2: vec4<f32>;
var<private> c3: vec4<f32>;
var<private> c4: vec4<f32>;
var<private> c5: vec4<f32>;
var<private> c6: vec4<f32>;
var<private> c7: vec4<f32>;

// Offsets of the workgroup's heads.
struct Head {
    // The first vec4 of the first token.
    q: u32,
    k: u32,
    v: u32,
    first_row: u32,
    // The last live token.
    last: u32,
}

fn kernel(group: vec3<u32>, lane: u32) {
    let live = min(run.count, p.tokens);
    let kv_head = group.y / (p.heads / p.kv_heads) * p.k_head;
    let head = Head(group.y * p.q_head, p.k_first + kv_head, p.v_first + kv_head, group.x * ROWS, max(live, 1u) - 1u);
    let row_lane = row_lane_of(lane);
    let key_lane = key_lane_of(lane);
    let steps = (DIM4 + 3u) / 4u;
    // The largest scores and the sums of weights over the lane's keys: of the first four rows and of the others.
    var largest_low = vec4(MASKED);
    var largest_high = vec4(MASKED);
    var sum_low = vec4(0.0);
    var sum_high = vec4(0.0);
    var q0 = query(0u, 0u, head, lane);
    var q1 = query(1u, 0u, head, lane);
    var q2 = query(2u, 0u, head, lane);
    var q3 = query(3u, 0u, head, lane);
    var k0 = key(0u, 0u, 0u, head, lane);
    var k1 = key(1u, 0u, 0u, head, lane);
    // Rows beyond the live tokens see nothing.
    let end = select(0u, live, head.first_row < live);
    for (var tile = 0u; tile < end; tile += KEYS) {
        s0 = vec4(0.0);
        s1 = vec4(0.0);
        s2 = vec4(0.0);
        s3 = vec4(0.0);
        s4 = vec4(0.0);
        s5 = vec4(0.0);
        s6 = vec4(0.0);
        s7 = vec4(0.0);
        for (var step = 0u; step < steps; step++) {
            workgroupBarrier();
            put_query(0u, 0u, q0, lane);
            put_query(0u, 4u, q1, lane);
            put_query(4u, 0u, q2, lane);
            put_query(4u, 4u, q3, lane);
            put_key(0u, k0, lane);
            put_key(4u, k1, lane);
            workgroupBarrier();
            // The last step prefetches the first step of the next tile.
            let is_last = step + 1u == steps;
            let next = select(step + 1u, 0u, is_last);
            let next_tile = select(tile, tile + KEYS, is_last);
            q0 = query(0u, next, head, lane);
            q1 = query(1u, next, head, lane);
            q2 = query(2u, next, head, lane);
            q3 = query(3u, next, head, lane);
            k0 = key(0u, next_tile, next, head, lane);
            k1 = key(1u, next_tile, next, head, lane);
            score(0u, row_lane, key_lane);
            score(1u, row_lane, key_lane);
            // The last step of heads of 72 has two vec4s.
            if DIM4 % 4u == 0u || !is_last {
                score(2u, row_lane, key_lane);
                score(3u, row_lane, key_lane);
            }
        }
        var v0 = value(0u, tile, head, lane);
        var v1 = value(1u, tile, head, lane);
        var v2 = value(2u, tile, head, lane);
        var v3 = value(3u, tile, head, lane);
        var v4 = vec4(0.0);
        if LANE_DIM4 > 2u {
            v4 = value(4u, tile, head, lane);
        }

        if tile + KEYS > live {
            hide(vec4(tile + key_lane * 4u) + vec4(0u, 1u, 2u, 3u) < vec4(live));
        }
        let most_low = max(largest_low, max_of_eight(vec4(most(s0), most(s1), most(s2), most(s3)), lane));
        let most_high = max(largest_high, max_of_eight(vec4(most(s4), most(s5), most(s6), most(s7)), lane));
        let less_low = exp2(largest_low - most_low);
        let less_high = exp2(largest_high - most_high);
        largest_low = most_low;
        largest_high = most_high;
        s0 = exp2(s0 - vec4(most_low.x));
        s1 = exp2(s1 - vec4(most_low.y));
        s2 = exp2(s2 - vec4(most_low.z));
        s3 = exp2(s3 - vec4(most_low.w));
        s4 = exp2(s4 - vec4(most_high.x));
        s5 = exp2(s5 - vec4(most_high.y));
        s6 = exp2(s6 - vec4(most_high.z));
        s7 = exp2(s7 - vec4(most_high.w));
        sum_low = fma(sum_low, less_low, vec4(sum(s0), sum(s1), sum(s2), sum(s3)));
        sum_high = fma(sum_high, less_high, vec4(sum(s4), sum(s5), sum(s6), sum(s7)));
        rescale(less_low, less_high);

        for (var part = 0u; part < 2u; part++) {
            workgroupBarrier();
            if key_lane / 4u == part {
                put_weights(key_lane % 4u, row_lane);
            }
            put_value(0u, v0, lane);
            put_value(1u, v1, lane);
            put_value(2u, v2, lane);
            put_value(3u, v3, lane);
            if LANE_DIM4 > 2u {
                put_value(4u, v4, lane);
            }
            workgroupBarrier();
            // The second half prefetches its own values again, so that both halves are one loop body: unrolled, steps took longer.
            let next = tile + STEP_KEYS;
            v0 = value(0u, next, head, lane);
            v1 = value(1u, next, head, lane);
            v2 = value(2u, next, head, lane);
            v3 = value(3u, next, head, lane);
            if LANE_DIM4 > 2u {
                v4 = value(4u, next, head, lane);
            }
            add(0u, row_lane, key_lane);
            add(1u, row_lane, key_lane);
            add(2u, row_lane, key_lane);
            add(3u, row_lane, key_lane);
        }
    }

    let low = sum_of_eight(sum_low, lane);
    let high = sum_of_eight(sum_high, lane);
    let row = head.first_row + row_lane * 4u;
    write(row + 0u, low.x, a0, b0, c0, group.y, key_lane);
    write(row + 1u, low.y, a1, b1, c1, group.y, key_lane);
    write(row + 2u, low.z, a2, b2, c2, group.y, key_lane);
    write(row + 3u, low.w, a3, b3, c3, group.y, key_lane);
    write(row + 32u, high.x, a4, b4, c4, group.y, key_lane);
    write(row + 33u, high.y, a5, b5, c5, group.y, key_lane);
    write(row + 34u, high.z, a6, b6, c6, group.y, key_lane);
    write(row + 35u, high.w, a7, b7, c7, group.y, key_lane);
}

// A vec4 of a head; in the last step it may be clamped to one that is not used.
fn dim4_of(step: u32, lane: u32) -> u32 {
    let dim4 = step * STEP + lane % 4u;
    if DIM4 % 4u == 0u {
        return dim4;
    }
    return min(dim4, DIM4 - 1u);
}

// What the lane loads: `i` counts 16 rows, 16 keys, or 64 vec4s of values of 16 keys.
fn query(i: u32, step: u32, head: Head, lane: u32) -> vec4<f32> {
    let row = min(head.first_row + i * 16u + lane / 4u, head.last);
    return q4(row * p.q_token + head.q + dim4_of(step, lane));
}

fn key(i: u32, tile: u32, step: u32, head: Head, lane: u32) -> vec4<f32> {
    let token = min(tile + i * 16u + lane / 4u, head.last);
    return k4(token * p.k_token + head.k + dim4_of(step, lane));
}

fn value(i: u32, first: u32, head: Head, lane: u32) -> vec4<f32> {
    let at = i * 64u + lane;
    let token = min(first + at / DIM4, head.last);
    return v4(token * p.k_token + head.v + at % DIM4);
}

// Row 4a + b of 32 is lane a's row b; keys likewise. Exponentials are powers of two.
fn put_query(row: u32, first_lane: u32, numbers: vec4<f32>, lane: u32) {
    sh_rows[row + lane / 4u % 4u][lane % 4u][first_lane + lane / 16u] = numbers * LOG2_E;
}

fn put_key(first_lane: u32, numbers: vec4<f32>, lane: u32) {
    sh_others[lane / 4u % 4u][lane % 4u][first_lane + lane / 16u] = numbers;
}

fn put_value(i: u32, numbers: vec4<f32>, lane: u32) {
    let at = i * 64u + lane;
    let token = at / DIM4;
    let dim4 = at % DIM4;
    if DIM4 % 4u == 0u || token < STEP_KEYS {
        sh_others[token / 4u * LANE_DIM4 + dim4 / 8u][token % 4u][dim4 % 8u] = numbers;
    }
}

fn put_weights(key4: u32, row_lane: u32) {
    sh_rows[0][key4][row_lane] = s0;
    sh_rows[1][key4][row_lane] = s1;
    sh_rows[2][key4][row_lane] = s2;
    sh_rows[3][key4][row_lane] = s3;
    sh_rows[4][key4][row_lane] = s4;
    sh_rows[5][key4][row_lane] = s5;
    sh_rows[6][key4][row_lane] = s6;
    sh_rows[7][key4][row_lane] = s7;
}

// Transposes four rows.
fn transposed(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        vec4(a.x, b.x, c.x, d.x),
        vec4(a.y, b.y, c.y, d.y),
        vec4(a.z, b.z, c.z, d.z),
        vec4(a.w, b.w, c.w, d.w),
    );
}

// Accumulates a vec4 of the step into the scores of all rows and keys.
fn score(dim4: u32, row_lane: u32, key_lane: u32) {
    let keys = transposed(
        sh_others[0][dim4][key_lane],
        sh_others[1][dim4][key_lane],
        sh_others[2][dim4][key_lane],
        sh_others[3][dim4][key_lane],
    );
    s0 = scored(s0, sh_rows[0][dim4][row_lane], keys);
    s1 = scored(s1, sh_rows[1][dim4][row_lane], keys);
    s2 = scored(s2, sh_rows[2][dim4][row_lane], keys);
    s3 = scored(s3, sh_rows[3][dim4][row_lane], keys);
    s4 = scored(s4, sh_rows[4][dim4][row_lane], keys);
    s5 = scored(s5, sh_rows[5][dim4][row_lane], keys);
    s6 = scored(s6, sh_rows[6][dim4][row_lane], keys);
    s7 = scored(s7, sh_rows[7][dim4][row_lane], keys);
}

fn scored(scores: vec4<f32>, row: vec4<f32>, keys: mat4x4<f32>) -> vec4<f32> {
    return fma(vec4(row.w), keys[3], fma(vec4(row.z), keys[2], fma(vec4(row.y), keys[1], fma(vec4(row.x), keys[0], scores))));
}

// Masks the scores of keys beyond the live tokens.
fn hide(seen: vec4<bool>) {
    s0 = select(vec4(MASKED), s0, seen);
    s1 = select(vec4(MASKED), s1, seen);
    s2 = select(vec4(MASKED), s2, seen);
    s3 = select(vec4(MASKED), s3, seen);
    s4 = select(vec4(MASKED), s4, seen);
    s5 = select(vec4(MASKED), s5, seen);
    s6 = select(vec4(MASKED), s6, seen);
    s7 = select(vec4(MASKED), s7, seen);
}

fn most(scores: vec4<f32>) -> f32 {
    return max(max(scores.x, scores.y), max(scores.z, scores.w));
}

fn sum(weights: vec4<f32>) -> f32 {
    return (weights.x + weights.y) + (weights.z + weights.w);
}

// Rescales the sums to a larger reference score.
fn rescale(low: vec4<f32>, high: vec4<f32>) {
    a0 *= low.x;
    a1 *= low.y;
    a2 *= low.z;
    a3 *= low.w;
    a4 *= high.x;
    a5 *= high.y;
    a6 *= high.z;
    a7 *= high.w;
    b0 *= low.x;
    b1 *= low.y;
    b2 *= low.z;
    b3 *= low.w;
    b4 *= high.x;
    b5 *= high.y;
    b6 *= high.z;
    b7 *= high.w;
    if LANE_DIM4 > 2u {
        c0 *= low.x;
        c1 *= low.y;
        c2 *= low.z;
        c3 *= low.w;
        c4 *= high.x;
        c5 *= high.y;
        c6 *= high.z;
        c7 *= high.w;
    }
}

// Accumulates the weighted values of four keys.
fn add(key4: u32, row_lane: u32, key_lane: u32) {
    let low = transposed(
        sh_rows[0][key4][row_lane],
        sh_rows[1][key4][row_lane],
        sh_rows[2][key4][row_lane],
        sh_rows[3][key4][row_lane],
    );
    let high = transposed(
        sh_rows[4][key4][row_lane],
        sh_rows[5][key4][row_lane],
        sh_rows[6][key4][row_lane],
        sh_rows[7][key4][row_lane],
    );
    add_key(key4, 0u, low[0], high[0], key_lane);
    add_key(key4, 1u, low[1], high[1], key_lane);
    add_key(key4, 2u, low[2], high[2], key_lane);
    add_key(key4, 3u, low[3], high[3], key_lane);
}

fn add_key(key4: u32, key: u32, low: vec4<f32>, high: vec4<f32>, key_lane: u32) {
    let first = sh_others[key4 * LANE_DIM4][key][key_lane];
    a0 = fma(vec4(low.x), first, a0);
    a1 = fma(vec4(low.y), first, a1);
    a2 = fma(vec4(low.z), first, a2);
    a3 = fma(vec4(low.w), first, a3);
    a4 = fma(vec4(high.x), first, a4);
    a5 = fma(vec4(high.y), first, a5);
    a6 = fma(vec4(high.z), first, a6);
    a7 = fma(vec4(high.w), first, a7);
    let second = sh_others[key4 * LANE_DIM4 + 1u][key][key_lane];
    b0 = fma(vec4(low.x), second, b0);
    b1 = fma(vec4(low.y), second, b1);
    b2 = fma(vec4(low.z), second, b2);
    b3 = fma(vec4(low.w), second, b3);
    b4 = fma(vec4(high.x), second, b4);
    b5 = fma(vec4(high.y), second, b5);
    b6 = fma(vec4(high.z), second, b6);
    b7 = fma(vec4(high.w), second, b7);
    if LANE_DIM4 > 2u {
        let third = sh_others[key4 * LANE_DIM4 + 2u][key][key_lane];
        c0 = fma(vec4(low.x), third, c0);
        c1 = fma(vec4(low.y), third, c1);
        c2 = fma(vec4(low.z), third, c2);
        c3 = fma(vec4(low.w), third, c3);
        c4 = fma(vec4(high.x), third, c4);
        c5 = fma(vec4(high.y), third, c5);
        c6 = fma(vec4(high.z), third, c6);
        c7 = fma(vec4(high.w), third, c7);
    }
}

// A row's output; zeros for tokens that are not live.
fn write(row: u32, weights: f32, first: vec4<f32>, second: vec4<f32>, third: vec4<f32>, head: u32, key_lane: u32) {
    if row >= p.tokens {
        return;
    }
    let at = (row * p.heads + head) * DIM4 + key_lane;
    let is_live = row < run.count;
    o[at] = select(vec4(0.0), first / weights, is_live);
    o[at + 8u] = select(vec4(0.0), second / weights, is_live);
    if LANE_DIM4 > 2u && key_lane + 16u < DIM4 {
        o[at + 16u] = select(vec4(0.0), third / weights, is_live);
    }
}
