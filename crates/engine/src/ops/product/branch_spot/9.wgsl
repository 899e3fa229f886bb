@group(0) @binding(9) var<storage, read> branch_b: array<LowQuad>;
