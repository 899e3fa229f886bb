@group(0) @binding(3) var<storage, read> x: array<f32>;

fn function(i: u32) -> f32 {
    // Columns before the slice wrap around to large values.
    let column = i % p.width - p.offset;
    if column < p.other {
        return x[i / p.width * p.other + column];
    }
    return 0.0;
}
