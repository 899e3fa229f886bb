// o = sum over s of e^(largest[s] - most) * sums[s] / sum over s of e^(largest[s] - most) * sum[s]     s over live KV splits
// One workgroup per token and head (x) and slice of SLICE vec4s (y). A lane combines one vec4 of some KV splits; then the lanes of each vec4
// are reduced.
override WIDTH: u32 = 256u;
override DIM4: u32 = 64u;
override TILE: u32 = 16u;
const SLICE: u32 = 8u;
// Groups of lanes that are reduced through workgroup memory.
override REDUCED: u32 = 32u;
// Declared before the arrays in workgroup memory that it sizes: naga fails on overrides that come later.
//#use indexing
//#use kv_splits
//#use store_layout
//#use team
//#use split_reduce

@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> o: array<vec4<f32>>;

// A vec4 over some KV splits: largest score, and sum of weights and weighted sum relative to it.
struct Found {
    largest: f32,
    weights: f32,
    sum: vec4<f32>,
}

var<workgroup> sh_sum: array<vec4<f32>, WG>;
var<workgroup> sh_about: array<vec2<f32>, WG>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let place = group.x;
    let number = lane.part * LANES + lane.in_part;
    let dim4 = group.y * SLICE + number % SLICE;
    reduce_splits(found(place, min(dim4, DIM4 - 1u), number / SLICE), number);
    if number < SLICE && dim4 < DIM4 {
        let all = over(number);
        let column = (place % HEADS * DIM4 + dim4) * 4u;
        let live = place / HEADS < run.count;
        o[place / HEADS * HEADS * DIM4 + y_index(column) / 4u] = select(vec4(0.0), all.sum / all.weights, live);
    }
}

// Combines every (WG / SLICE)-th KV split from `mine` on, with four loads in flight.
fn found(place: u32, dim4: u32, mine: u32) -> Found {
    let step = WG / SLICE;
    let live = live_kv_splits(place / HEADS);
    let first = place * SPLITS;
    let rows = p.tokens * HEADS * SPLITS * DIM4 + first;
    var found = Found(MASKED, 0.0, vec4(0.0));
    for (var s = mine; s < live; s += 4u * step) {
        let s4 = vec4(s) + vec4(0u, 1u, 2u, 3u) * step;
        let at = min(s4, vec4(live - 1u));
        let sum_0 = parts[(first + at.x) * DIM4 + dim4];
        let sum_1 = parts[(first + at.y) * DIM4 + dim4];
        let sum_2 = parts[(first + at.z) * DIM4 + dim4];
        let sum_3 = parts[(first + at.w) * DIM4 + dim4];
        let row_0 = parts[rows + at.x];
        let row_1 = parts[rows + at.y];
        let row_2 = parts[rows + at.z];
        let row_3 = parts[rows + at.w];
        let counts = s4 < vec4(live);
        let scores = select(vec4(MASKED), vec4(row_0.x, row_1.x, row_2.x, row_3.x), counts);
        let largest = max(max(found.largest, max(scores.x, scores.y)), max(scores.z, scores.w));
        let factor = select(vec4(0.0), exp(scores - vec4(largest)), counts);
        let before = exp(found.largest - largest);
        found.sum = found.sum * before + factor.x * sum_0 + factor.y * sum_1 + factor.z * sum_2 + factor.w * sum_3;
        found.weights = found.weights * before + dot(factor, vec4(row_0.y, row_1.y, row_2.y, row_3.y));
        found.largest = largest;
    }
    return found;
}

// Combines the groups of a vec4.
fn over(dim4: u32) -> Found {
    var all = Found(MASKED, 0.0, vec4(0.0));
    for (var i = 0u; i < REDUCED; i++) {
        all.largest = max(all.largest, sh_about[i * SLICE + dim4].x);
    }
    for (var i = 0u; i < REDUCED; i++) {
        let about = sh_about[i * SLICE + dim4];
        let factor = exp(about.x - all.largest);
        all.weights += factor * about.y;
        all.sum += factor * sh_sum[i * SLICE + dim4];
    }
    return all;
}
