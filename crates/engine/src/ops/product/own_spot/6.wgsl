@group(0) @binding(6) var<storage, read> own_b: array<OwnQuad>;
