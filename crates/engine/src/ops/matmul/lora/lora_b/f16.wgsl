// B in f16.
@group(0) @binding(auto) var<storage, read> up_b: array<UpVec4>;
alias UpVec4 = vec2<u32>;

fn up_vec4(words: UpVec4) -> vec4<f32> {
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
