// y[t, j] = a[t, j] * wa[j] / sqrt(mean(a[t, :]^2) + eps) + the same for b and wb     one workgroup per row t
//#use reduce
//#use elements

struct Params {
    // Width of a row, and elements (scalars or vec4s) per row.
    width: u32,
    reads: u32,
    eps: f32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> a: array<Elements>;
@group(0) @binding(3) var<storage, read> wa: array<Elements>;
@group(0) @binding(4) var<storage, read> b: array<Elements>;
@group(0) @binding(5) var<storage, read> wb: array<Elements>;
@group(0) @binding(6) var<storage, read_write> y: array<Elements>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.reads;
    // Each lane keeps its first element in registers, loaded before the reduction; most rows have no more.
    let first = min(lane.index, p.reads - 1u);
    let both = array(a[start + first], b[start + first]);
    let weights = array(wa[first], wb[first]);
    var squares = select(vec2(0.0), squared(both[0], both[1]), lane.index < p.reads);
    for (var j = lane.index + WG; j < p.reads; j += WG) {
        squares += squared(a[start + j], b[start + j]);
    }
    let rho = inverseSqrt(wg_sum_pair(squares, lane) / f32(p.width) + p.eps);
    if lane.index < p.reads {
        y[start + first] = both[0] * rho.x * weights[0] + both[1] * rho.y * weights[1];
    }
    for (var j = lane.index + WG; j < p.reads; j += WG) {
        y[start + j] = a[start + j] * rho.x * wa[j] + b[start + j] * rho.y * wb[j];
    }
}
