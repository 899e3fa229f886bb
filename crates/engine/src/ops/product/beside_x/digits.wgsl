// x is in memory as digits: a piece is half a unit, whose numbers have their scale in common.
fn beside_pieces() -> u32 {
    return PIECES * 2u;
}

fn beside_dot(start: u32, piece: u32) -> f32 {
    let unit = piece / 2u;
    let half = piece % 2u;
    let at = start + unit_column(unit, half * 4u) / 4u;
    let one = kept_at(half * 2u, unit);
    let two = kept_at(half * 2u + 1u, unit);
    let sum = dot(low_quad(low_a[at]), whole(one.xy)) + dot(low_quad(low_a[at + 1u]), whole(one.zw))
        + dot(low_quad(low_a[at + 2u]), whole(two.xy)) + dot(low_quad(low_a[at + 3u]), whole(two.zw));
    return sum * about_piece(unit)[2u + half];
}

// What two digits stand for.
fn whole(digits: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(digits.x) * 256 + unpack4xI8(digits.y));
}
