// x is combined where it is needed: a piece is a quad.
fn beside_pieces() -> u32 {
    return p.width / 4u;
}

fn beside_dot(start: u32, quad: u32) -> f32 {
    return dot(low_quad(low_a[start + quad]), combined(quad));
}
