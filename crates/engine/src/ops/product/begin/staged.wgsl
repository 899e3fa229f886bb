// x is brought to workgroup memory once.
//#use columns
//#use shared
fn begin(first_turn: u32, lane: Lane) {
    for (var i = number(lane); i < QUADS; i += WG) {
        set_quad(i, x4(token * p.x_columns, quad_column(i)));
    }
    make_low(lane);
    hold(lane);
}
