// x is brought to workgroup memory once.
//#use columns
//#use shared
fn begin(first_turn: u32, lane: Lane) {
    for (var turn = 0u; turn < QUADS; turn += WG * 2u) {
        let i = turn + number(lane) * 2u;
        hold_two(i, staged(i), staged(i + 1u));
    }
    make_low(lane);
    hold_all(lane);
}

fn staged(i: u32) -> vec4<f32> {
    return x4(token * p.x_columns, quad_column(inside(i)));
}
