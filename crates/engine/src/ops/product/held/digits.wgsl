// Products of bytes with x in digits.
//#use words
fn digits_at(piece: u32, first: u32) -> array<vec4<u32>, 8> {
    return held_words(piece, first);
}

fn group_dot(levels: u32, x: vec4<u32>) -> vec3<i32> {
    return vec3(dot4I8Packed(levels, x.x), dot4I8Packed(levels, x.y), dot4I8Packed(levels, x.z));
}
