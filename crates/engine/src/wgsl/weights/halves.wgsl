// A slab of halves that are not made numbers of.
enable f16;
@group(0) @binding(2) var<storage, read> w: array<vec4<f16>>;
