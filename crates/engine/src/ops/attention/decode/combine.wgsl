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
//#use partials
//#use store_layout
//#use team
//#use split_reduce

@group(0) @binding(3) var<storage, read_write> o: array<vec4<f32>>;

var<workgroup> sh_sum: array<vec4<f32>, WG>;
var<workgroup> sh_about: array<vec2<f32>, WG>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let place = group.x;
    let number = lane.part * LANES + lane.in_part;
    let dim4 = group.y * SLICE + number % SLICE;
    reduce_splits(found(place, min(dim4, DIM4 - 1u), number / SLICE, WG / SLICE), number);
    if number < SLICE && dim4 < DIM4 {
        let all = over(number);
        let column = (place % HEADS * DIM4 + dim4) * 4u;
        let live = place / HEADS < run.count;
        o[place / HEADS * HEADS * DIM4 + y_index(column) / 4u] = select(vec4(0.0), all.sum / all.weights, live);
    }
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
