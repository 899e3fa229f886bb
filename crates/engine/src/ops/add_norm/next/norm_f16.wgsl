// x = h1 * w2 / sqrt(mean(h1^2) + eps) as f16 columns; each lane reads back only what it wrote itself.
//#use f16_columns
@group(0) @binding(7) var<storage, read> w2: array<f32>;
@group(0) @binding(8) var<storage, read_write> x: array<f16>;

fn next(start: u32, squares: f32, lane: Lane) {
    let rho = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
    var most = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        most = max(most, abs(h1[start + j] * rho * w2[j]));
    }
    let exponent = f16_exponent(wg_max(most, lane));
    let inverse = f16_inverse(exponent);
    let first = f16_start(start / p.width);
    for (var j = lane.index; j < p.width; j += WG) {
        x[first + f16_place(j)] = f16(h1[start + j] * rho * w2[j] * inverse);
    }
    for (var j = p.width + lane.index; j < f16_padded(); j += WG) {
        x[first + j] = f16(0.0);
    }
    if lane.index == 0u {
        x[first + f16_padded()] = f16(exponent);
    }
}
