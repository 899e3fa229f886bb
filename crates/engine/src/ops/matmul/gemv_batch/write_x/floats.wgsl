// x as staged: f32, then the statistics of the pieces.
fn write_staged(token_index: u32, lane: Lane) {
    let start = token_index * (X_VEC4S + PIECES);
    for (var i = local_index(lane); i < X_VEC4S; i += WG) {
        staged_x[start + i] = word_at(i);
    }
    for (var piece = local_index(lane); piece < PIECES; piece += WG) {
        staged_x[start + X_VEC4S + piece] = bitcast<vec4<u32>>(piece_stats(piece));
    }
}
