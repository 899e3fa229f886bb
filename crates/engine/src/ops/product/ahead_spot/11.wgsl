@group(0) @binding(11) var<storage, read> low_b: array<LowQuad>;
