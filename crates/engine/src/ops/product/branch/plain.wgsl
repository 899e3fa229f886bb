// The branch as it is.
const BRANCH_LOW = false;

fn branch_more(quad: u32) -> vec4<f32> {
    return vec4(0.0);
}

fn branch_more_two(one: u32, two: u32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>();
}
