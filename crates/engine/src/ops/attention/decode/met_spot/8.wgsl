@group(0) @binding(8) var<storage, read> met_a: array<LowQuad>;
