// int8 hi/lo pairs, two vec4s per word, plane by plane, then the statistics of the pieces, half by half.
fn write_staged(token_index: u32, lane: Lane) {
    let planes = GROUPS / 2u;
    let start = token_index * (planes + 1u) * PIECES;
    for (var i = local_index(lane); i < planes * PIECES; i += WG) {
        staged_x[start + i] = word_at(i / PIECES * 2u * PIECES + i % PIECES);
    }
    for (var piece = local_index(lane); piece < PIECES; piece += WG) {
        staged_x[start + planes * PIECES + piece] = bitcast<vec4<u32>>(piece_stats(piece).xzyw);
    }
}
