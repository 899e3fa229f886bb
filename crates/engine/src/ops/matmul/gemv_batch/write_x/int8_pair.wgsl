// int8 hi/lo pairs, two groups to a word, plane by plane, then the statistics of pieces, half by half.
fn write_staged(which: u32, lane: Lane) {
    let planes = GROUPS / 2u;
    let start = which * (planes + 1u) * PIECES;
    for (var i = number(lane); i < planes * PIECES; i += WG) {
        staged_x[start + i] = word_at(i / PIECES * 2u * PIECES + i % PIECES);
    }
    for (var piece = number(lane); piece < PIECES; piece += WG) {
        staged_x[start + planes * PIECES + piece] = bitcast<vec4<u32>>(piece_stats(piece).xzyw);
    }
}
