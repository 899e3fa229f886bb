// Dot products of int8 weights with int8 hi/lo pairs: a word has the high or low bytes of a vec4 of x.
//#use x_words
// Dot products of two vec4s: (high, low).
fn group_dot(a: u32, b: u32, x: vec4<u32>) -> vec2<i32> {
    return vec2(dot4I8Packed(a, x.x) + dot4I8Packed(b, x.z), dot4I8Packed(a, x.y) + dot4I8Packed(b, x.w));
}

fn half_dot(a: u32, b: u32, c: u32, d: u32, x: vec4<u32>, y: vec4<u32>) -> i32 {
    let int8_pair = group_dot(a, b, x) + group_dot(c, d, y);
    return int8_pair.x * 256 + int8_pair.y;
}

// Exact dot products of the halves of a unit.
fn int8_sums(levels: array<u32, 8>, x: array<vec4<u32>, 4>) -> vec2<i32> {
    return vec2(
        half_dot(levels[0], levels[1], levels[2], levels[3], x[0], x[1]),
        half_dot(levels[4], levels[5], levels[6], levels[7], x[2], x[3]),
    );
}
