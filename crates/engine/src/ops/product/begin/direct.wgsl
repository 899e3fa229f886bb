// x is read from memory by every team.
//#use columns
fn begin(first_turn: u32, lane: Lane) {
    make_low(lane);
}

fn x_quad(i: u32) -> vec4<f32> {
    return x4(token * p.x_columns, i * 4u);
}

fn x_column(i: u32) -> u32 {
    return i * 4u;
}
