// h1 = s * (h + a * rho * w),  rho = 1 / sqrt(mean(a^2) + eps);  then part `next`     one workgroup per row
// Before the arrays in workgroup memory of the next part: naga fails on overrides that come later.
//#use next
//#use reduce

struct Params {
    width: u32,
    eps: f32,
    rows: u32,
    scaled: u32,
    // Whether the branch is normed.
    post_norm: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> h: array<f32>;
@group(0) @binding(3) var<storage, read> a: array<f32>;
@group(0) @binding(4) var<storage, read> w: array<f32>;
@group(0) @binding(5) var<storage, read> s: array<f32>;
@group(0) @binding(6) var<storage, read_write> h1: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.width;
    var squares = 0.0;
    var rho = 1.0;
    if p.post_norm != 0u {
        for (var j = lane.index; j < p.width; j += WG) {
            let value = a[start + j];
            squares += value * value;
        }
        rho = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
    }
    let scale = select(1.0, s[0], p.scaled != 0u);
    squares = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        var branch = a[start + j];
        if p.post_norm != 0u {
            branch *= rho * w[j];
        }
        let value = (h[start + j] + branch) * scale;
        h1[start + j] = value;
        squares += value * value;
    }
    next(start, squares, lane);
}
