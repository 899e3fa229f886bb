// Each row of ab is a row of a, then a row of b.
//#use gate
@group(0) @binding(3) var<storage, read> ab: array<f32>;

fn function(i: u32) -> f32 {
    let at = i / p.width * p.other + i % p.width;
    return gate(ab[at]) * ab[at + p.width];
}
