// Queries, keys and values, concatenated in one buffer.
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> o: array<vec4<f32>>;

fn q4(at: u32) -> vec4<f32> {
    return x[at];
}

fn k4(at: u32) -> vec4<f32> {
    return x[at];
}

fn v4(at: u32) -> vec4<f32> {
    return x[at];
}
