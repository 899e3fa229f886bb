// x is brought to workgroup memory once.
//#use columns
//#use shared
fn begin(first_turn: u32, lane: Lane) {
    for (var turn = 0u; turn < QUADS; turn += WG) {
        let i = turn + number(lane);
        var quad = vec4(0.0);
        if i < QUADS {
            quad = x4(token * p.x_columns, quad_column(i));
        }
        hold_quad(i, quad);
    }
    make_low(lane);
    hold_all(lane);
}
