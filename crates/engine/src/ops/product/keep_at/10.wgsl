@group(0) @binding(10) var<storage, read_write> kept: array<vec4<f32>>;
