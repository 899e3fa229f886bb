// o = sum over s of e^(largest[s] - most) * sums[s] / sum over s of e^(largest[s] - most) * sum[s]     s over live stretches
// One workgroup per token and head (x) and slice of SLICE quads (y).
override WIDTH: u32 = 256u;
override QUADS: u32 = 64u;
override SLICE: u32 = 16u;
override TILE: u32 = 16u;
// In front of what workgroup memory is sized by: naga stumbles over overrides that come later.
//#use keys
//#use stretches
//#use lay
//#use reduce

@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> o: array<vec4<f32>>;

var<workgroup> sh_factor: array<f32, SPLITS>;
var<workgroup> sh_sum: array<vec4<f32>, WG>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let place = group.x;
    let live = live_stretches(place / HEADS);
    let first = place * SPLITS;
    let rows = p.tokens * HEADS * SPLITS * QUADS + first;
    let quad = group.y * SLICE + lane.index % SLICE;
    let mine = lane.index / SLICE;
    let sums = quad < QUADS && lane.index < WG / SLICE * SLICE;
    // On its way before it is needed.
    var early = vec4(0.0);
    if sums && mine < live {
        early = parts[(first + mine) * QUADS + quad];
    }
    var most = HIDDEN;
    for (var s = lane.index; s < live; s += WG) {
        most = max(most, parts[rows + s].x);
    }
    most = wg_max(most, lane);
    var weights = 0.0;
    for (var s = lane.index; s < live; s += WG) {
        let row = parts[rows + s];
        let factor = exp(row.x - most);
        sh_factor[s] = factor;
        weights += factor * row.y;
    }
    // The sum's barriers also make the factors visible.
    weights = wg_sum(weights, lane);
    var sum = vec4(0.0);
    if sums && mine < live {
        sum = sh_factor[mine] * early;
        for (var s = mine + WG / SLICE; s < live; s += WG / SLICE) {
            sum += sh_factor[s] * parts[(first + s) * QUADS + quad];
        }
    }
    sh_sum[lane.index] = sum;
    workgroupBarrier();
    if lane.index < SLICE && quad < QUADS {
        for (var part = 1u; part < WG / SLICE; part++) {
            sum += sh_sum[part * SLICE + lane.index];
        }
        let column = (place % HEADS * QUADS + quad) * 4u;
        o[place / HEADS * HEADS * QUADS + y_place(column) / 4u] = select(vec4(0.0), sum / weights, place / HEADS < run.count);
    }
}
