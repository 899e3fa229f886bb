@group(0) @binding(10) var<storage, read> low_b: array<LowQuad>;
