// Each row of ab is a row of a followed by a row of b.
//#use gelu
@group(0) @binding(3) var<storage, read> ab: array<f32>;

fn function(i: u32) -> f32 {
    let at = i / p.width * p.other + i % p.width;
    return ab[at] * logistic(ab[at + p.width]);
}
