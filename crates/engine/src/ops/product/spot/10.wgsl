@group(0) @binding(10) var<storage, read> low_first: array<LowFirst>;
@group(0) @binding(11) var<storage, read> low_b: array<LowQuad>;
