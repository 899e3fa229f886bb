// x = h1 * w2 / sqrt(mean(h1^2) + eps); each lane reads back only what it wrote itself.
@group(0) @binding(7) var<storage, read> w2: array<f32>;
@group(0) @binding(8) var<storage, read_write> x: array<f32>;

fn next(start: u32, squares: f32, lane: Lane) {
    let rho = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
    for (var j = lane.index; j < p.width; j += WG) {
        x[start + j] = h1[start + j] * rho * w2[j];
    }
}
