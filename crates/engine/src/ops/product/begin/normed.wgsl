// x = h * w2 / sqrt(mean(h^2) + eps), made by every workgroup for itself; h is bound as x
//#use columns
//#use shared
//#use next
fn h_quad(i: u32) -> vec4<f32> {
    return x4(token * p.x_columns, quad_column(inside(i)));
}

// Most lanes make two quads, neighbours: those stay in registers, and their weights are on their way before the sum is waited for.
fn begin(first_turn: u32, lane: Lane) {
    let one = number(lane) * 2u;
    let two = one + 1u;
    let first = h_quad(one);
    let second = h_quad(two);
    let first_weight = next_weight(quad_column(inside(one)));
    let second_weight = next_weight(quad_column(inside(two)));
    var squares = counted(one, dot(first, first) + dot(second, second));
    for (var turn = WG * 2u; turn < QUADS; turn += WG * 2u) {
        squares += kept_square(turn + one) + kept_square(turn + two);
    }
    let norm = next_scale(squares, lane);
    hold_two(one, first * norm * first_weight, second * norm * second_weight);
    for (var turn = WG * 2u; turn < QUADS; turn += WG * 2u) {
        hold_two(turn + one, normed(turn + one, norm), normed(turn + two, norm));
    }
    make_low(lane);
    hold_all(lane);
}

// The others wait in workgroup memory.
fn kept_square(i: u32) -> f32 {
    let quad = h_quad(i);
    set_quad(i, quad);
    return counted(i, dot(quad, quad));
}

fn normed(i: u32, norm: f32) -> vec4<f32> {
    return get_quad(i) * norm * next_weight(quad_column(inside(i)));
}
