// As it is staged: floats, then the statistics of pieces.
fn write_staged(which: u32, lane: Lane) {
    let start = which * (X_VEC4S + PIECES);
    for (var i = number(lane); i < X_VEC4S; i += WG) {
        staged_x[start + i] = word_at(i);
    }
    for (var piece = number(lane); piece < PIECES; piece += WG) {
        staged_x[start + X_VEC4S + piece] = bitcast<vec4<u32>>(piece_stats(piece));
    }
}
