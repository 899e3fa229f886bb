// Digits of x of all tokens lie in memory, plane by plane: a launch before has written them down.
override PIECES: u32 = 48u;
@group(0) @binding(3) var<storage, read> kept: array<vec4<u32>>;

fn kept_at(row: u32, piece: u32) -> vec4<u32> {
    return kept[(token * 7u + row) * PIECES + piece];
}

fn held_words(piece: u32, first: u32) -> array<vec4<u32>, 8> {
    let a = kept_at(0u, piece);
    let b = kept_at(2u, piece);
    let c = kept_at(4u, piece);
    let d = kept_at(1u, piece);
    let e = kept_at(3u, piece);
    let f = kept_at(5u, piece);
    return array<vec4<u32>, 8>(
        vec4(a.x, b.x, c.x, 0u), vec4(a.y, b.y, c.y, 0u), vec4(a.z, b.z, c.z, 0u), vec4(a.w, b.w, c.w, 0u),
        vec4(d.x, e.x, f.x, 0u), vec4(d.y, e.y, f.y, 0u), vec4(d.z, e.z, f.z, 0u), vec4(d.w, e.w, f.w, 0u),
    );
}

fn about_piece(piece: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(kept_at(6u, piece));
}
