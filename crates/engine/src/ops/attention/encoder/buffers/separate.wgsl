// Queries, keys and values in separate buffers.
@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4<f32>>;

fn q4(at: u32) -> vec4<f32> {
    return q[at];
}

fn k4(at: u32) -> vec4<f32> {
    return k[at];
}

fn v4(at: u32) -> vec4<f32> {
    return v[at];
}
