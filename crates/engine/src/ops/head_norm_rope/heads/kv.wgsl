// Only keys and values.
//#use kv_heads
fn raw(head: u32, token: u32, j: u32) -> f32 {
    return kv_raw(head, token, j);
}

fn weight(head: u32, j: u32) -> f32 {
    return kv_weight(head, j);
}

fn is_normed(head: u32) -> bool {
    return kv_is_normed(head);
}

fn rope_angle(head: u32, token: u32, i: u32) -> vec2<f32> {
    return kv_rope_angle(head, token, i);
}

fn store(head: u32, token: u32, lane: u32) {
    kv_store(head, token, lane);
}
