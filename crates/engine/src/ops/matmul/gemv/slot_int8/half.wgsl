// The dot product of half a unit of A, from vec4 `group` on, with the integers of x: two vec4s of hi/lo pairs per word.
fn int8_half(at: u32, unit: u32, group: u32, one: vec4<u32>, two: vec4<u32>) -> f32 {
    return dot(slot_vec4(at, unit, group), slot_integers(one.xy)) + dot(slot_vec4(at, unit, group + 1u), slot_integers(one.zw))
        + dot(slot_vec4(at, unit, group + 2u), slot_integers(two.xy)) + dot(slot_vec4(at, unit, group + 3u), slot_integers(two.zw));
}

fn slot_integers(int8_pair: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(int8_pair.x) * 256 + unpack4xI8(int8_pair.y));
}
