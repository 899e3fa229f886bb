@group(0) @binding(8) var<storage, read> own_b: array<OwnQuad>;
