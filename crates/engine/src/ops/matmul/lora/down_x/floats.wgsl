// x is in global memory, in some layout: a piece is a vec4.
//#use store_layout
fn down_pieces() -> u32 {
    return p.width / 4u;
}

fn down_dot(start: u32, four: u32) -> f32 {
    return dot(lora_vec4(lora_a[start + four]), x[y_index(four * 4u) / 4u]);
}
