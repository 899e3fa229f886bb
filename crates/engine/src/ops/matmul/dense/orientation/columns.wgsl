// b is [k, n]. Four terms by four columns of the result, one vec4 of columns per term.
fn block(k4: u32, column4: u32) -> mat4x4<f32> {
    let at = k4 * 4u * p.columns4 + column4;
    return mat4x4<f32>(b[at], b[at + p.columns4], b[at + 2u * p.columns4], b[at + 3u * p.columns4]);
}

fn times(terms: vec4<f32>, block: mat4x4<f32>) -> vec4<f32> {
    return block * terms;
}
