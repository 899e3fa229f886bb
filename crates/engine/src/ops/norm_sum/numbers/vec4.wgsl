// Four at a time.
alias Numbers = vec4<f32>;

fn squared(a: Numbers, b: Numbers) -> vec2<f32> {
    return vec2(dot(a, a), dot(b, b));
}
