// x of all tokens in global memory, in the form in which a workgroup of one token stages it; an earlier dispatch wrote it.
override PIECES: u32 = 48u;
override X_VEC4S: u32 = 384u;
@group(0) @binding(3) var<storage, read> staged_x: array<vec4<u32>>;

fn word_at(i: u32) -> vec4<u32> {
    return staged_x[token * (X_VEC4S + PIECES) + i];
}

fn piece_stats(piece: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(word_at(X_VEC4S + piece));
}
