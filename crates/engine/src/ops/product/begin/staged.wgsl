// x is brought to workgroup memory once.
//#use columns
//#use shared
fn begin(group: vec3<u32>, lane: Lane) {
    for (var i = number(lane); i < QUADS; i += WG) {
        set_quad(i, x4(0u, quad_column(i)));
    }
    make_low(lane);
    hold(lane);
}
