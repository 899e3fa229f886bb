// The branch as it is.
fn branch_at(quad: u32) -> vec4<f32> {
    return a[quad];
}
