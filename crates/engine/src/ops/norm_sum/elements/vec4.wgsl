// Elements are vec4s.
alias Elements = vec4<f32>;

fn squared(a: Elements, b: Elements) -> vec2<f32> {
    return vec2(dot(a, a), dot(b, b));
}
