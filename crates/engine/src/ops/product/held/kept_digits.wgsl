// Digits of x of all tokens lie in memory, plane by plane: a dispatch before has written them down. What is known of a piece lies half by half.
override PIECES: u32 = 48u;
// Groups of four in a piece, two to a word.
override GROUPS: u32 = 8u;
@group(0) @binding(3) var<storage, read> kept: array<vec4<u32>>;

fn kept_at(plane: u32, piece: u32) -> vec4<u32> {
    return kept[(token * (GROUPS / 2u + 1u) + plane) * PIECES + piece];
}

fn digits_at(piece: u32, first: u32) -> array<vec4<u32>, 4> {
    let plane = first / 2u;
    return array<vec4<u32>, 4>(kept_at(plane, piece), kept_at(plane + 1u, piece), kept_at(plane + 2u, piece), kept_at(plane + 3u, piece));
}

fn about_piece(piece: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(kept_at(GROUPS / 2u, piece)).xzyw;
}
