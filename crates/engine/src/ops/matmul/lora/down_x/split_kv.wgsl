// x is combined from split-KV partials on the fly: a piece is a vec4.
fn down_pieces() -> u32 {
    return p.width / 4u;
}

fn down_dot(start: u32, four: u32) -> f32 {
    return dot(lora_vec4(lora_a[start + four]), combined(four));
}
