// Products of bytes with x in digits: high and low ones of two groups to a word.
//#use words
// Of two groups.
fn group_dot(a: u32, b: u32, x: vec4<u32>) -> vec2<i32> {
    return vec2(dot4I8Packed(a, x.x) + dot4I8Packed(b, x.z), dot4I8Packed(a, x.y) + dot4I8Packed(b, x.w));
}

fn half_dot(a: u32, b: u32, c: u32, d: u32, x: vec4<u32>, y: vec4<u32>) -> i32 {
    let digits = group_dot(a, b, x) + group_dot(c, d, y);
    return digits.x * 256 + digits.y;
}

// Over the halves of a unit, exactly.
fn digit_sums(levels: array<u32, 8>, x: array<vec4<u32>, 4>) -> vec2<i32> {
    return vec2(
        half_dot(levels[0], levels[1], levels[2], levels[3], x[0], x[1]),
        half_dot(levels[4], levels[5], levels[6], levels[7], x[2], x[3]),
    );
}
