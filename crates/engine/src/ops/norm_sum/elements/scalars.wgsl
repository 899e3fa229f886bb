// Elements are scalars.
alias Elements = f32;

fn squared(a: Elements, b: Elements) -> vec2<f32> {
    return vec2(a * a, b * b);
}
