@group(0) @binding(10) var<storage, read> branch_b: array<LowQuad>;
