// x is staged in workgroup memory.
//#use columns
//#use x_memory
fn prologue(first_turn: u32, lane: Lane) {
    for (var turn = 0u; turn < X_VEC4S; turn += WG * 2u) {
        let i = turn + local_index(lane) * 2u;
        stage_two(i, staged(i), staged(i + 1u));
    }
    compute_lora_down(lane);
    stage_end(lane);
}

fn staged(i: u32) -> vec4<f32> {
    return x4(token * p.x_columns, vec4_column(clamp_index(i)));
}
