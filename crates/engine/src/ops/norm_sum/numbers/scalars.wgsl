// One at a time.
alias Numbers = f32;

fn squared(a: Numbers, b: Numbers) -> vec2<f32> {
    return vec2(a * a, b * b);
}
