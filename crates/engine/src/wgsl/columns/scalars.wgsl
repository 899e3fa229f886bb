// Columns of any length; elements past the end are zero.
@group(0) @binding(3) var<storage, read> x: array<f32>;

fn x1(column: u32, k: u32) -> f32 {
    // The index is clamped to the column, so that the next column's NaN is never multiplied by a padding zero.
    return select(0.0, x[column * p.width + min(k, p.width - 1u)], k < p.width);
}

fn x4(column: u32, k: u32) -> vec4<f32> {
    return vec4(x1(column, k), x1(column, k + 1u), x1(column, k + 2u), x1(column, k + 3u));
}
