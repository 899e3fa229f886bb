// Digits, two groups of all pieces after two others, then what is known of pieces, half by half.
fn keep(which: u32, lane: Lane) {
    let planes = GROUPS / 2u;
    let start = which * (planes + 1u) * PIECES;
    for (var i = number(lane); i < planes * PIECES; i += WG) {
        kept[start + i] = word_at(i / PIECES * 2u * PIECES + i % PIECES);
    }
    for (var piece = number(lane); piece < PIECES; piece += WG) {
        kept[start + planes * PIECES + piece] = bitcast<vec4<u32>>(about_piece(piece).xzyw);
    }
}
