// Each row of ab is a row of a followed by a row of b; each row of the result holds their gradients in the same order.
//#use gelu
@group(0) @binding(3) var<storage, read> ab: array<f32>;
@group(0) @binding(4) var<storage, read> dy: array<f32>;

fn function(i: u32) -> f32 {
    let column = i % p.width;
    let at = i / p.width * p.other + column % p.other;
    if column < p.other {
        return dy[at] * ab[i + p.other] * gelu_slope(ab[i]);
    }
    return dy[at] * gelu(ab[i - p.other]);
}
