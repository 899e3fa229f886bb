@group(0) @binding(11) var<storage, read> met_a: array<LowQuad>;
