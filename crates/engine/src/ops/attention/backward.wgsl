// result[i] = sum over j of w[i, j] * c[j], where w = P or P * (dP - delta), P = e^(a[i] . a[j] - log_sum), dP = b[i] . b[j]
// One workgroup per block of ROWS of the own side i and kv head, over tiles of OTHERS of the other side j. Which side queries are
// on, the part says: rows of queries over keys give dq, keys over rows of queries give dk and, with plain P, dv.
override WIDTH: u32 = 256u;
override QUADS: u32 = 64u;
override STAGE: u32 = 4u;
// 1: weights are P, and the other side's gradients are summed.
override PLAIN: u32 = 0u;
//#use keys
//#use side

const WG: u32 = 256u;
const ROWS: u32 = 32u;
const OTHERS: u32 = 64u;
// A row of products in quads of others.
const OTHER_QUADS: u32 = 16u;
// Lanes that weigh one row.
const LANES: u32 = 8u;
// Local arrays cannot be sized by an override; heads of 512 take this many.
const MOST_SUMS: u32 = 16u;

@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> log_sums: array<f32>;
@group(0) @binding(7) var<storage, read> delta: array<f32>;
@group(0) @binding(8) var<storage, read_write> result: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read> starts: array<u32>;

var<workgroup> sh_product: array<vec4<f32>, ROWS * OTHER_QUADS>;
var<workgroup> sh_own: array<vec4<f32>, ROWS * STAGE>;
var<workgroup> sh_other: array<vec4<f32>, OTHERS * STAGE>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    let first = group.x * ROWS;
    let kv_head = group.y;
    let all = own_count();
    let span = others_of(first, min(first + ROWS, all) - 1u);
    let groups = min(WG / QUADS, ROWS);
    let each = (ROWS + groups - 1u) / groups;
    let quad = id % QUADS;
    let my_row = id / QUADS * each;
    var sums: array<vec4<f32>, MOST_SUMS>;
    for (var i = 0u; i < each; i++) {
        sums[i] = vec4(0.0);
    }
    let own = min(first + id / LANES, all - 1u);
    let at = id / LANES * OTHER_QUADS + id % LANES;
    for (var tile = span.x; tile < span.y; tile += OTHERS) {
        multiply(false, first, tile, span.y, kv_head, id);
        workgroupBarrier();
        let others = vec4(tile + id % LANES * 4u) + vec4(0u, 1u, 2u, 3u);
        var low = weigh(own, others, span.y, kv_head, sh_product[at]);
        var high = weigh(own, others + vec4(LANES * 4u), span.y, kv_head, sh_product[at + LANES]);
        workgroupBarrier();
        if PLAIN == 0u {
            multiply(true, first, tile, span.y, kv_head, id);
            workgroupBarrier();
            low *= sh_product[at] - delta4(own, others, kv_head);
            high *= sh_product[at + LANES] - delta4(own, others + vec4(LANES * 4u), kv_head);
            workgroupBarrier();
        }
        sh_product[at] = low;
        sh_product[at + LANES] = high;
        workgroupBarrier();
        if my_row < ROWS {
            for (var i = 0u; i < min(OTHERS, span.y - tile); i += 4u) {
                // Others behind the last one weigh nothing and are read as the last one.
                let c_0 = summand(tile + i, kv_head, quad);
                let c_1 = summand(min(tile + i + 1u, span.y - 1u), kv_head, quad);
                let c_2 = summand(min(tile + i + 2u, span.y - 1u), kv_head, quad);
                let c_3 = summand(min(tile + i + 3u, span.y - 1u), kv_head, quad);
                for (var r = 0u; r < each; r++) {
                    let w = sh_product[min(my_row + r, ROWS - 1u) * OTHER_QUADS + i / 4u];
                    sums[r] += w.x * c_0 + w.y * c_1 + w.z * c_2 + w.w * c_3;
                }
            }
        }
        workgroupBarrier();
    }
    if my_row >= ROWS {
        return;
    }
    for (var i = 0u; i < each; i++) {
        if my_row + i < ROWS && first + my_row + i < all {
            result[own_place(first + my_row + i, kv_head) * QUADS + quad] = sums[i];
        }
    }
}

// P of four pairs, zero where a query does not see a key.
fn weigh(own: u32, others: vec4<u32>, end: u32, kv_head: u32, scores: vec4<f32>) -> vec4<f32> {
    let last = min(others, vec4(end - 1u));
    let seen = seen4(own, last) & (others < vec4(end));
    return select(vec4(0.0), exp(scores - log_sum4(own, last, kv_head)), seen);
}

// Products of a block and a tile: the first kind a . a, the second b . b. A lane makes four neighbours of rows r and r + 16.
fn multiply(second: bool, first: u32, tile: u32, end: u32, kv_head: u32, id: u32) {
    let r = id / OTHER_QUADS;
    let o = id % OTHER_QUADS;
    var low = vec4(0.0);
    var high = vec4(0.0);
    for (var start = 0u; start < QUADS; start += STAGE) {
        for (var i = id; i < ROWS * STAGE; i += WG) {
            let own = min(first + i / STAGE, own_count() - 1u);
            sh_own[i % STAGE * ROWS + i / STAGE] = own4(second, own, kv_head, start + i % STAGE);
        }
        for (var i = id; i < OTHERS * STAGE; i += WG) {
            let n = i / STAGE;
            // Other 4a + b lies at b * 16 + a: lanes then read neighbours.
            sh_other[i % STAGE * OTHERS + n % 4u * OTHER_QUADS + n / 4u] =
                other4(second, min(tile + n, end - 1u), kv_head, start + i % STAGE);
        }
        workgroupBarrier();
        for (var i = 0u; i < STAGE; i++) {
            let a = sh_own[i * ROWS + r];
            let b = sh_own[i * ROWS + r + 16u];
            let o_0 = sh_other[i * OTHERS + o];
            let o_1 = sh_other[i * OTHERS + o + OTHER_QUADS];
            let o_2 = sh_other[i * OTHERS + o + 2u * OTHER_QUADS];
            let o_3 = sh_other[i * OTHERS + o + 3u * OTHER_QUADS];
            low += vec4(dot(a, o_0), dot(a, o_1), dot(a, o_2), dot(a, o_3));
            high += vec4(dot(b, o_0), dot(b, o_1), dot(b, o_2), dot(b, o_3));
        }
        workgroupBarrier();
    }
    sh_product[r * OTHER_QUADS + o] = low;
    sh_product[(r + 16u) * OTHER_QUADS + o] = high;
}

fn key_place(key: u32, kv_head: u32) -> u32 {
    return key * p.kv_heads + kv_head;
}

fn query4(second: bool, row: u32, kv_head: u32, quad: u32) -> vec4<f32> {
    let at = place_of(row, kv_head) * QUADS + quad;
    if second {
        return dy[at];
    }
    return q[at];
}

fn key4(second: bool, key: u32, kv_head: u32, quad: u32) -> vec4<f32> {
    let at = key_place(key, kv_head) * QUADS + quad;
    if second {
        return v[at];
    }
    return k[at];
}
