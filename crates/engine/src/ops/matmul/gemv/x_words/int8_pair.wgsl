// int8 hi/lo pairs of x of all tokens in global memory, plane by plane, written by an earlier dispatch; then the statistics of each half.
override PIECES: u32 = 48u;
// vec4s per piece, two per word.
override GROUPS: u32 = 8u;
@group(0) @binding(3) var<storage, read> staged_x: array<vec4<u32>>;

fn staged_at(plane: u32, piece: u32) -> vec4<u32> {
    return staged_x[(token * (GROUPS / 2u + 1u) + plane) * PIECES + piece];
}

fn int8_at(piece: u32, first: u32) -> array<vec4<u32>, 4> {
    let plane = first / 2u;
    return array<vec4<u32>, 4>(staged_at(plane, piece), staged_at(plane + 1u, piece), staged_at(plane + 2u, piece), staged_at(plane + 3u, piece));
}

fn piece_stats(piece: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(staged_at(GROUPS / 2u, piece)).xzyw;
}
