// o[t, h, :] = sum over live tokens s of weight(t, s) * v[s, h, :] / sum of the weights, weight(t, s) = e^(q[t, h, :] . k[s, h, :] - m);
// bidirectional attention with matrix units, heads of 64 in blocks; one subgroup computes 32 rows, 64 keys at a time
//
// Workgroups have one subgroup, so that barriers are cheap, and little workgroup memory, so that many are resident. Keys and values are loaded
// when needed: two blocks of rows use each. Scores stay in registers, except 16 rows at a time in workgroup memory, where lanes address them
// by row: half a row each. Sums are rescaled, also through workgroup memory, only if a row's scores exceed the reference m of its weights by
// more than GROWTH.
enable f16;
//#use matrix

struct Params {
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    blocks: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read_write> o: array<vec4<f32>>;

const ROWS: u32 = 32u;
const KEYS: u32 = 64u;
// Strides between rows in vec4s: one or two more than needed, against bank conflicts.
const SCORE_STRIDE: u32 = KEYS / 4u + 1u;
const WEIGHT_STRIDE: u32 = KEYS / 4u + 2u;
const SUM_STRIDE: u32 = 5u;
// The score of a key that is not live.
const MASKED: f32 = -3.0e38;
// Weights are at most e^8, far below the largest f16.
const GROWTH: f32 = 8.0;
const LOG2_E: f32 = 1.442695041;

var<workgroup> sh_w: array<vec4<f16>, 16u * WEIGHT_STRIDE>;
// Scores of 16 rows, or a block of sums.
var<workgroup> sh_y: array<vec4<f32>, 16u * SCORE_STRIDE>;
var<workgroup> sh_row: array<f32, 32>;
var<workgroup> sh_rescale: array<f32, 16>;
var<workgroup> sh_grown: vec4<u32>;

// Sums of the first 16 rows and of the others, by block of the head's columns. Browsers allow matrices only in function variables.
struct Sums {
    a0: Block,
    a1: Block,
    a2: Block,
    a3: Block,
    b0: Block,
    b1: Block,
    b2: Block,
    b3: Block,
}

// The reference score of a row's weights, and their sum over the lane's keys.
struct Running {
    reference: f32,
    weights: f32,
}

// The lane's half of a row of scores.
struct Scores {
    z0: vec4<f32>,
    z1: vec4<f32>,
    z2: vec4<f32>,
    z3: vec4<f32>,
    z4: vec4<f32>,
    z5: vec4<f32>,
    z6: vec4<f32>,
    z7: vec4<f32>,
}

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    init_units(id);
    var sums: Sums;
    let head = group.x;
    let first_row = group.y * ROWS;
    let queries = (head * p.blocks + first_row / 16u) * 256u;
    let keys = (p.heads + head / (p.heads / p.kv_heads)) * p.blocks * 256u;
    let values = keys + p.kv_heads * p.blocks * 256u;
    let q0 = left_heads(queries);
    let q1 = left_heads(queries + 64u);
    let q2 = left_heads(queries + 128u);
    let q3 = left_heads(queries + 192u);
    let r0 = left_heads(queries + 256u);
    let r1 = left_heads(queries + 320u);
    let r2 = left_heads(queries + 384u);
    let r3 = left_heads(queries + 448u);
    var first = Running(MASKED, 0.0);
    var second = Running(MASKED, 0.0);
    for (var key = 0u; key < run.count; key += KEYS) {
        // Unrolled by hand: loops around matrix instructions are slow.
        let at = keys + key * 16u;
        let k0 = right_heads(at);
        let k1 = right_heads(at + 64u);
        let k2 = right_heads(at + 128u);
        let k3 = right_heads(at + 192u);
        let s0 = scored(q0, q1, q2, q3, k0, k1, k2, k3);
        let t0 = scored(r0, r1, r2, r3, k0, k1, k2, k3);
        let k4 = right_heads(at + 256u);
        let k5 = right_heads(at + 320u);
        let k6 = right_heads(at + 384u);
        let k7 = right_heads(at + 448u);
        let s1 = scored(q0, q1, q2, q3, k4, k5, k6, k7);
        let t1 = scored(r0, r1, r2, r3, k4, k5, k6, k7);
        let k8 = right_heads(at + 512u);
        let k9 = right_heads(at + 576u);
        let k10 = right_heads(at + 640u);
        let k11 = right_heads(at + 704u);
        let s2 = scored(q0, q1, q2, q3, k8, k9, k10, k11);
        let t2 = scored(r0, r1, r2, r3, k8, k9, k10, k11);
        let k12 = right_heads(at + 768u);
        let k13 = right_heads(at + 832u);
        let k14 = right_heads(at + 896u);
        let k15 = right_heads(at + 960u);
        let s3 = scored(q0, q1, q2, q3, k12, k13, k14, k15);
        let t3 = scored(r0, r1, r2, r3, k12, k13, k14, k15);

        let s = row_scores(s0, s1, s2, s3, key, id);
        note_growth(s, first, id);
        if workgroupUniformLoad(&sh_grown).x != 0u {
            first = grown(s, first, id);
            if key > 0u {
                sums.a0 = rescaled(sums.a0, id);
                sums.a1 = rescaled(sums.a1, id);
                sums.a2 = rescaled(sums.a2, id);
                sums.a3 = rescaled(sums.a3, id);
            }
        }
        first.weights += weigh(s, first.reference, id);
        workgroupBarrier();
        let w0 = left_weights(0u, 0u);
        let w1 = left_weights(1u, 1u);
        let w2 = left_weights(2u, 2u);
        let w3 = left_weights(3u, 3u);

        let t = row_scores(t0, t1, t2, t3, key, id);
        note_growth(t, second, id);
        if workgroupUniformLoad(&sh_grown).x != 0u {
            second = grown(t, second, id);
            if key > 0u {
                sums.b0 = rescaled(sums.b0, id);
                sums.b1 = rescaled(sums.b1, id);
                sums.b2 = rescaled(sums.b2, id);
                sums.b3 = rescaled(sums.b3, id);
            }
        }
        second.weights += weigh(t, second.reference, id);
        workgroupBarrier();
        let u0 = left_weights(0u, 4u);
        let u1 = left_weights(1u, 5u);
        let u2 = left_weights(2u, 6u);
        let u3 = left_weights(3u, 7u);
        workgroupBarrier();

        let value = values + key * 16u;
        add_values(&sums, w0, u0, value);
        add_values(&sums, w1, u1, value + 256u);
        add_values(&sums, w2, u2, value + 512u);
        add_values(&sums, w3, u3, value + 768u);
    }
    end_row(first, id);
    write_block(sums.a0, first_row, head, 0u, id);
    write_block(sums.a1, first_row, head, 4u, id);
    write_block(sums.a2, first_row, head, 8u, id);
    write_block(sums.a3, first_row, head, 12u, id);
    end_row(second, id);
    write_block(sums.b0, first_row + 16u, head, 0u, id);
    write_block(sums.b1, first_row + 16u, head, 4u, id);
    write_block(sums.b2, first_row + 16u, head, 8u, id);
    write_block(sums.b3, first_row + 16u, head, 12u, id);
}

// Scores of 16 rows with 16 keys.
fn scored(q0: Left, q1: Left, q2: Left, q3: Left, k0: Right, k1: Right, k2: Right, k3: Right) -> Block {
    var scores: Block;
    scores = multiply_add(q0, k0, scores);
    scores = multiply_add(q1, k1, scores);
    scores = multiply_add(q2, k2, scores);
    return multiply_add(q3, k3, scores);
}

// The lane's half of a row of a block of 16, through workgroup memory.
fn row_scores(s0: Block, s1: Block, s2: Block, s3: Block, key: u32, id: u32) -> Scores {
    put_rows(s0, 0u, SCORE_STRIDE);
    put_rows(s1, 4u, SCORE_STRIDE);
    put_rows(s2, 8u, SCORE_STRIDE);
    put_rows(s3, 12u, SCORE_STRIDE);
    if id == 0u {
        sh_grown = vec4(0u);
    }
    workgroupBarrier();
    let at = id % 16u * SCORE_STRIDE + id / 16u * 8u;
    var s = Scores(sh_y[at], sh_y[at + 1u], sh_y[at + 2u], sh_y[at + 3u], sh_y[at + 4u], sh_y[at + 5u], sh_y[at + 6u], sh_y[at + 7u]);
    if key + KEYS > run.count {
        let ours = key + id / 16u * 32u;
        s.z0 = seen(s.z0, ours);
        s.z1 = seen(s.z1, ours + 4u);
        s.z2 = seen(s.z2, ours + 8u);
        s.z3 = seen(s.z3, ours + 12u);
        s.z4 = seen(s.z4, ours + 16u);
        s.z5 = seen(s.z5, ours + 20u);
        s.z6 = seen(s.z6, ours + 24u);
        s.z7 = seen(s.z7, ours + 28u);
    }
    return s;
}

// Masks keys beyond the live tokens.
fn seen(scores: vec4<f32>, key: u32) -> vec4<f32> {
    return select(vec4(MASKED), scores, vec4(key) + vec4(0u, 1u, 2u, 3u) < vec4(run.count));
}

fn largest(s: Scores) -> f32 {
    let most = max(max(max(s.z0, s.z1), max(s.z2, s.z3)), max(max(s.z4, s.z5), max(s.z6, s.z7)));
    return max(max(most.x, most.y), max(most.z, most.w));
}

// All writing lanes store the same value.
fn note_growth(s: Scores, row: Running, id: u32) {
    if largest(s) > row.reference + GROWTH {
        sh_grown = vec4(1u);
    }
}

// Makes a row's weights relative to its largest score so far; stores the factor for its sums in sh_rescale.
fn grown(s: Scores, row: Running, id: u32) -> Running {
    let most = largest(s);
    sh_row[id] = most;
    workgroupBarrier();
    let reference = max(row.reference, max(most, sh_row[id ^ 16u]));
    let rescale = exp(row.reference - reference);
    sh_rescale[id % 16u] = rescale;
    workgroupBarrier();
    return Running(reference, row.weights * rescale);
}

// Stores the weights of the lane's half of a row, and returns their sum.
fn weigh(s: Scores, reference: f32, id: u32) -> f32 {
    let at = id % 16u * WEIGHT_STRIDE + id / 16u * 8u;
    let sum = weigh4(s.z0, reference, at) + weigh4(s.z1, reference, at + 1u)
        + weigh4(s.z2, reference, at + 2u) + weigh4(s.z3, reference, at + 3u)
        + weigh4(s.z4, reference, at + 4u) + weigh4(s.z5, reference, at + 5u)
        + weigh4(s.z6, reference, at + 6u) + weigh4(s.z7, reference, at + 7u);
    return dot(sum, vec4(1.0));
}

fn weigh4(scores: vec4<f32>, reference: f32, at: u32) -> vec4<f32> {
    let weights = vec4<f16>(exp2((scores - vec4(reference)) * LOG2_E));
    sh_w[at] = weights;
    // Rounded to f16, as they are multiplied.
    return vec4<f32>(weights);
}

// Accumulates the values of 16 keys for both blocks of rows.
fn add_values(sums: ptr<function, Sums>, w: Left, u: Left, at: u32) {
    let v0 = right_heads(at);
    (*sums).a0 = multiply_add(w, v0, (*sums).a0);
    (*sums).b0 = multiply_add(u, v0, (*sums).b0);
    let v1 = right_heads(at + 64u);
    (*sums).a1 = multiply_add(w, v1, (*sums).a1);
    (*sums).b1 = multiply_add(u, v1, (*sums).b1);
    let v2 = right_heads(at + 128u);
    (*sums).a2 = multiply_add(w, v2, (*sums).a2);
    (*sums).b2 = multiply_add(u, v2, (*sums).b2);
    let v3 = right_heads(at + 192u);
    (*sums).a3 = multiply_add(w, v3, (*sums).a3);
    (*sums).b3 = multiply_add(u, v3, (*sums).b3);
}

// Rescales a block through workgroup memory, which can be addressed by row.
fn rescaled(sums: Block, id: u32) -> Block {
    put_rows(sums, 0u, SUM_STRIDE);
    workgroupBarrier();
    for (var i = id; i < 64u; i += 32u) {
        sh_y[i / 4u * SUM_STRIDE + i % 4u] *= sh_rescale[i / 4u];
    }
    workgroupBarrier();
    let scaled = take_rows(0u, SUM_STRIDE);
    workgroupBarrier();
    return scaled;
}

// Stores the factors that normalise the sums of 16 rows in sh_rescale.
fn end_row(row: Running, id: u32) {
    sh_row[id] = row.weights;
    workgroupBarrier();
    sh_rescale[id % 16u] = 1.0 / (sh_row[id] + sh_row[id ^ 16u]);
}

// Writes a block's output, from vec4 `dim4` of the rows on; zeros for tokens that are not live.
fn write_block(sums: Block, first_row: u32, head: u32, dim4: u32, id: u32) {
    put_rows(sums, 0u, SUM_STRIDE);
    workgroupBarrier();
    for (var i = id; i < 64u; i += 32u) {
        let row = first_row + i / 4u;
        if row < p.tokens {
            let mean = sh_y[i / 4u * SUM_STRIDE + i % 4u] * sh_rescale[i / 4u];
            o[(row * p.heads + head) * 16u + dim4 + i % 4u] = select(vec4(0.0), mean, row < run.count);
        }
    }
    workgroupBarrier();
}
