// b is [n, k]. Four columns of the result by four terms, one vec4 of terms per column.
fn block(k4: u32, column4: u32) -> mat4x4<f32> {
    let at = column4 * 4u * p.k4 + k4;
    return mat4x4<f32>(b[at], b[at + p.k4], b[at + 2u * p.k4], b[at + 3u * p.k4]);
}

fn times(terms: vec4<f32>, block: mat4x4<f32>) -> vec4<f32> {
    return terms * block;
}
