// B in f32.
@group(0) @binding(auto) var<storage, read> up_b: array<UpVec4>;
alias UpVec4 = vec4<f32>;

fn up_vec4(four: UpVec4) -> vec4<f32> {
    return four;
}
