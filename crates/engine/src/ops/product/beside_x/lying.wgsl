// x is in memory, in some order.
//#use lay
fn beside_x(quad: u32) -> vec4<f32> {
    return x[y_place(quad * 4u) / 4u];
}
