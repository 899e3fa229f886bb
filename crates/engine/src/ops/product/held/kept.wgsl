// x of all tokens lies in memory as workgroups of one token hold it: a dispatch before has written it down.
override PIECES: u32 = 48u;
override QUADS: u32 = 384u;
@group(0) @binding(3) var<storage, read> kept: array<vec4<u32>>;

fn word_at(i: u32) -> vec4<u32> {
    return kept[token * (QUADS + PIECES) + i];
}

fn about_piece(piece: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(word_at(QUADS + piece));
}
