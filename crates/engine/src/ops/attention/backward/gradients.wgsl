// result[i] = sum over j of w[i, j] * c[j], where w = P or P * (dP - delta), P = e^(a[i] . a[j] - log_sum), dP = b[i] . b[j]
// One workgroup per block of ROWS of the own side i and kv head, over tiles of OTHERS of the other side j. The part `side` defines which side
// the queries are: rows of queries over keys give dq, keys over rows of queries give dk and, with PLAIN, dv. If there are too few blocks,
// several workgroups share one: each takes every p.splits-th tile and writes partial sums.
override WIDTH: u32 = 256u;
override DIM4: u32 = 64u;
override STAGE: u32 = 4u;
// Rows per lane; a lane accumulates one vec4 of each.
override EACH: u32 = 8u;
// 1: the weights are P, and the other side's dy is accumulated.
override PLAIN: u32 = 0u;
//#use indexing
//#use side
//#use weighted_sums

const WG: u32 = 256u;
const ROWS: u32 = 32u;
const OTHERS: u32 = 64u;
// vec4s of others in a row of dot products.
const KEYS4: u32 = 16u;
// Lanes that compute the weights of one row.
const LANES: u32 = 8u;

@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> log_sums: array<f32>;
@group(0) @binding(7) var<storage, read> delta: array<f32>;
@group(0) @binding(8) var<storage, read_write> result: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read> starts: array<u32>;

var<workgroup> sh_score: array<vec4<f32>, ROWS * KEYS4>;
var<workgroup> sh_own: array<vec4<f32>, ROWS * STAGE>;
var<workgroup> sh_other: array<vec4<f32>, OTHERS * STAGE>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    let first = group.x * ROWS;
    let kv_head = group.y;
    let all = own_count();
    let span = others_of(first, min(first + ROWS, all) - 1u);
    let dim4 = id % DIM4;
    let my_row = id / DIM4 * EACH;
    var sums_0 = mat4x4<f32>();
    var sums_4 = mat4x4<f32>();
    var sums_8 = mat4x4<f32>();
    var sums_12 = mat4x4<f32>();
    let own = min(first + id / LANES, all - 1u);
    let at = id / LANES * KEYS4 + id % LANES;
    for (var tile = span.x + group.z * OTHERS; tile < span.y; tile += OTHERS * p.splits) {
        multiply(false, first, tile, span.y, kv_head, id);
        workgroupBarrier();
        let others = vec4(tile + id % LANES * 4u) + vec4(0u, 1u, 2u, 3u);
        var low = weigh(own, others, span.y, kv_head, sh_score[at]);
        var high = weigh(own, others + vec4(LANES * 4u), span.y, kv_head, sh_score[at + LANES]);
        workgroupBarrier();
        if PLAIN == 0u {
            multiply(true, first, tile, span.y, kv_head, id);
            workgroupBarrier();
            low *= sh_score[at] - delta4(own, others, kv_head);
            high *= sh_score[at + LANES] - delta4(own, others + vec4(LANES * 4u), kv_head);
            workgroupBarrier();
        }
        sh_score[at] = low;
        sh_score[at + LANES] = high;
        workgroupBarrier();
        if my_row < ROWS {
            for (var i = 0u; i < min(OTHERS, span.y - tile); i += 4u) {
                // Others out of range have weight 0 and are clamped to the last one.
                let others = mat4x4<f32>(
                    summand(tile + i, kv_head, dim4),
                    summand(min(tile + i + 1u, span.y - 1u), kv_head, dim4),
                    summand(min(tile + i + 2u, span.y - 1u), kv_head, dim4),
                    summand(min(tile + i + 3u, span.y - 1u), kv_head, dim4),
                );
                sums_0 = weighted16(sums_0, my_row, 0u, i, others);
                sums_4 = weighted16(sums_4, my_row, 4u, i, others);
                sums_8 = weighted16(sums_8, my_row, 8u, i, others);
                sums_12 = weighted16(sums_12, my_row, 12u, i, others);
            }
        }
        workgroupBarrier();
    }
    if my_row < ROWS {
        let place = Place(group.z * all_places(), first, my_row, kv_head, dim4);
        write16(place, 0u, sums_0);
        write16(place, 4u, sums_4);
        write16(place, 8u, sums_8);
        write16(place, 12u, sums_12);
    }
}

// Where a lane stores its results.
struct Place {
    // Offset of this workgroup's partial sums.
    start: u32,
    first: u32,
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
    let own = place.first + r;
    if i < EACH && r < ROWS && own < own_count() {
        result[(place.start + own_place(own, place.kv_head)) * DIM4 + place.dim4] = sum;
    }
}

fn all_places() -> u32 {
    return own_count() * p.kv_heads;
}

// P of four pairs, zero where a query does not see a key.
fn weigh(own: u32, others: vec4<u32>, end: u32, kv_head: u32, scores: vec4<f32>) -> vec4<f32> {
    let last = min(others, vec4(end - 1u));
    let seen = seen4(own, last) & (others < vec4(end));
    return select(vec4(0.0), exp(scores - log_sum4(own, last, kv_head)), seen);
}

// The vec4s of one stage that a lane stores in workgroup memory: its share of the block's rows, and of the tile's.
struct Staged {
    own: vec4<f32>,
    other_0: vec4<f32>,
    other_1: vec4<f32>,
}

// Dot products of a block and a tile: a . a first, b . b second. A lane computes four adjacent others for rows r and r + 16, and loads the
// next stage meanwhile.
fn multiply(second: bool, first: u32, tile: u32, end: u32, kv_head: u32, id: u32) {
    let r = id / KEYS4;
    let o = id % KEYS4;
    var low = vec4(0.0);
    var high = vec4(0.0);
    var staged = load_stage(second, first, vec2(tile, end), kv_head, 0u, id);
    for (var start = 0u; start < DIM4; start += STAGE) {
        store_stage(staged, id);
        workgroupBarrier();
        if start + STAGE < DIM4 {
            staged = load_stage(second, first, vec2(tile, end), kv_head, start + STAGE, id);
        }
        for (var i = 0u; i < STAGE; i++) {
            let a = sh_own[i * ROWS + r];
            let b = sh_own[i * ROWS + r + 16u];
            let o_0 = sh_other[i * OTHERS + o];
            let o_1 = sh_other[i * OTHERS + o + KEYS4];
            let o_2 = sh_other[i * OTHERS + o + 2u * KEYS4];
            let o_3 = sh_other[i * OTHERS + o + 3u * KEYS4];
            let others = transposed(o_0, o_1, o_2, o_3);
            low = dots(low, a, others);
            high = dots(high, b, others);
        }
        workgroupBarrier();
    }
    sh_score[r * KEYS4 + o] = low;
    sh_score[(r + 16u) * KEYS4 + o] = high;
}

fn load_stage(second: bool, first: u32, tile: vec2<u32>, kv_head: u32, start: u32, id: u32) -> Staged {
    let dim4 = start + id % STAGE;
    var staged: Staged;
    if id < ROWS * STAGE {
        staged.own = own4(second, min(first + id / STAGE, own_count() - 1u), kv_head, dim4);
    }
    if id < OTHERS * STAGE {
        staged.other_0 = other4(second, min(tile.x + id / STAGE, tile.y - 1u), kv_head, dim4);
    }
    if id + WG < OTHERS * STAGE {
        staged.other_1 = other4(second, min(tile.x + (id + WG) / STAGE, tile.y - 1u), kv_head, dim4);
    }
    return staged;
}

fn store_stage(staged: Staged, id: u32) {
    if id < ROWS * STAGE {
        sh_own[id % STAGE * ROWS + id / STAGE] = staged.own;
    }
    if id < OTHERS * STAGE {
        sh_other[other_at(id)] = staged.other_0;
    }
    if id + WG < OTHERS * STAGE {
        sh_other[other_at(id + WG)] = staged.other_1;
    }
}

// Other 4a + b is stored at b * 16 + a, so that adjacent lanes read adjacent vec4s.
fn other_at(i: u32) -> u32 {
    let n = i / STAGE;
    return i % STAGE * OTHERS + n % 4u * KEYS4 + n / 4u;
}

fn key_index(key: u32, kv_head: u32) -> u32 {
    return key * p.kv_heads + kv_head;
}

fn query4(second: bool, row: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    let at = place_of(row, kv_head) * DIM4 + dim4;
    if second {
        return dy[at];
    }
    return q[at];
}

fn key4(second: bool, key: u32, kv_head: u32, dim4: u32) -> vec4<f32> {
    let at = key_index(key, kv_head) * DIM4 + dim4;
    if second {
        return v[at];
    }
    return k[at];
}
