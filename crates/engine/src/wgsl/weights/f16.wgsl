// A slab of F16 weights, read as f16.
enable f16;
@group(0) @binding(2) var<storage, read> w: array<vec4<f16>>;
