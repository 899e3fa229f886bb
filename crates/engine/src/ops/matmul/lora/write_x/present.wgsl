// x is stored for the linear layers that follow.
@group(0) @binding(auto) var<storage, read_write> stored_x: array<vec4<f32>>;

fn write_x(i: u32, x: vec4<f32>) {
    stored_x[i] = x;
}
