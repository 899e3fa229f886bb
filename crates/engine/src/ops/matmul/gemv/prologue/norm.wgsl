// x = h * w2 / sqrt(mean(h^2) + eps), recomputed by every workgroup; h is bound as x
//#use columns
//#use x_memory
//#use next_norm
fn h_vec4(i: u32) -> vec4<f32> {
    return x4(token * p.x_columns, vec4_column(clamp_index(i)));
}

// Each lane keeps its first two vec4s in registers; their weights are loaded before the reduction.
fn prologue(first_turn: u32, lane: Lane) {
    let one = local_index(lane) * 2u;
    let two = one + 1u;
    let first = h_vec4(one);
    let second = h_vec4(two);
    let first_weight = next_weight(vec4_column(clamp_index(one)));
    let second_weight = next_weight(vec4_column(clamp_index(two)));
    var squares = valid_or_zero(one, dot(first, first) + dot(second, second));
    for (var turn = WG * 2u; turn < X_VEC4S; turn += WG * 2u) {
        squares += staged_square(turn + one) + staged_square(turn + two);
    }
    let norm = next_scale(squares, lane);
    stage_two(one, first * norm * first_weight, second * norm * second_weight);
    for (var turn = WG * 2u; turn < X_VEC4S; turn += WG * 2u) {
        stage_two(turn + one, normed(turn + one, norm), normed(turn + two, norm));
    }
    compute_lora_down(lane);
    stage_end(lane);
}

// The other vec4s are kept in workgroup memory.
fn staged_square(i: u32) -> f32 {
    let four = h_vec4(i);
    set_vec4(i, four);
    return valid_or_zero(i, dot(four, four));
}

fn normed(i: u32, norm: f32) -> vec4<f32> {
    return get_vec4(i) * norm * next_weight(vec4_column(clamp_index(i)));
}
