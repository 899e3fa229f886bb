// Every team reads x from global memory.
//#use columns
fn prologue(first_turn: u32, lane: Lane) {
    compute_lora_down(lane);
}

fn x_vec4(i: u32) -> vec4<f32> {
    return x4(token * p.x_columns, i * 4u);
}

fn x_column(i: u32) -> u32 {
    return i * 4u;
}
