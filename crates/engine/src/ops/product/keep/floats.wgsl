// As it is held: floats, then what is known of pieces.
fn keep(which: u32, lane: Lane) {
    let start = which * (QUADS + PIECES);
    for (var i = number(lane); i < QUADS; i += WG) {
        kept[start + i] = word_at(i);
    }
    for (var piece = number(lane); piece < PIECES; piece += WG) {
        kept[start + QUADS + piece] = bitcast<vec4<u32>>(about_piece(piece));
    }
}
