fn write_x(i: u32, x: vec4<f32>) {}
