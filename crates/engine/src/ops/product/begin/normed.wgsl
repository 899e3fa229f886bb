// x = h * w2 / sqrt(mean(h^2) + eps), made by every workgroup for itself; h is bound as x
//#use columns
//#use shared
//#use next
fn h_quad(i: u32) -> vec4<f32> {
    if i >= QUADS {
        return vec4(0.0);
    }
    return x4(token * p.x_columns, quad_column(i));
}

// Most lanes make two quads at most: those stay in registers, and their weights are on their way before the sum is waited for.
fn begin(first_turn: u32, lane: Lane) {
    let one = number(lane);
    let two = one + WG;
    let first = h_quad(one);
    let second = h_quad(two);
    let first_weight = next_weight(quad_column(inside(one)));
    let second_weight = next_weight(quad_column(inside(two)));
    var squares = dot(first, first) + dot(second, second);
    for (var turn = WG * 2u; turn < QUADS; turn += WG) {
        let more = h_quad(turn + one);
        set_quad(turn + one, more);
        squares += dot(more, more);
    }
    let norm = next_scale(squares, lane);
    hold_quad(one, first * norm * first_weight);
    if WG < QUADS {
        hold_quad(two, second * norm * second_weight);
    }
    for (var turn = WG * 2u; turn < QUADS; turn += WG) {
        hold_quad(turn + one, get_quad(turn + one) * norm * next_weight(quad_column(inside(turn + one))));
    }
    make_low(lane);
    hold_all(lane);
}
