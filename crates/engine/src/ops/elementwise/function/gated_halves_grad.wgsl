// Each row of ab is a row of a, then a row of b; so is each row of the result, with their gradients.
//#use gate
@group(0) @binding(3) var<storage, read> ab: array<f32>;
@group(0) @binding(4) var<storage, read> dy: array<f32>;

fn function(i: u32) -> f32 {
    let column = i % p.width;
    let at = i / p.width * p.other + column % p.other;
    if column < p.other {
        return dy[at] * ab[i + p.other] * gate_slope(ab[i]);
    }
    return dy[at] * gate(ab[i - p.other]);
}
