@group(0) @binding(5) var<storage, read> low_first: array<LowFirst>;
@group(0) @binding(6) var<storage, read> low_b: array<LowQuad>;
