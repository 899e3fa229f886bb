// x is in memory, in some order: a piece is a quad.
//#use lay
fn beside_pieces() -> u32 {
    return p.width / 4u;
}

fn beside_dot(start: u32, quad: u32) -> f32 {
    return dot(low_quad(low_a[start + quad]), x[y_place(quad * 4u) / 4u]);
}
