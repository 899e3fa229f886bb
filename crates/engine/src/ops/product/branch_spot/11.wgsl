@group(0) @binding(11) var<storage, read> branch_b: array<LowQuad>;
