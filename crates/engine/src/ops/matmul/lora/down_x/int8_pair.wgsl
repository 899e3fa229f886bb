// x is in global memory as int8 hi/lo pairs: a piece is half a unit, which shares a scale.
fn down_pieces() -> u32 {
    return PIECES * 2u;
}

fn down_dot(start: u32, piece: u32) -> f32 {
    let unit = piece / 2u;
    let half = piece % 2u;
    let at = start + unit_column(unit, half * 4u) / 4u;
    let one = staged_at(half * 2u, unit);
    let two = staged_at(half * 2u + 1u, unit);
    let sum = dot(lora_vec4(lora_a[at]), integers_of(one.xy)) + dot(lora_vec4(lora_a[at + 1u]), integers_of(one.zw))
        + dot(lora_vec4(lora_a[at + 2u]), integers_of(two.xy)) + dot(lora_vec4(lora_a[at + 3u]), integers_of(two.zw));
    return sum * piece_stats(unit)[2u + half];
}

// The 16-bit integers of hi/lo pairs.
fn integers_of(int8_pair: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(int8_pair.x) * 256 + unpack4xI8(int8_pair.y));
}
