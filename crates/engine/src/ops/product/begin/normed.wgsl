// x = h * w2 / sqrt(mean(h^2) + eps), made by every workgroup for itself; h is bound as x
//#use columns
//#use shared
//#use next
fn begin(first_turn: u32, lane: Lane) {
    var squares = 0.0;
    for (var i = number(lane); i < QUADS; i += WG) {
        let h = x4(token * p.x_columns, quad_column(i));
        set_quad(i, h);
        squares += dot(h, h);
    }
    let norm = next_scale(squares, lane);
    for (var i = number(lane); i < QUADS; i += WG) {
        set_quad(i, get_quad(i) * norm * next_weight(quad_column(i)));
    }
    make_low(lane);
    hold(lane);
}
