// High digits of the first and second half of all pieces, then the others, then what is known of pieces: seven words to a piece.
fn keep(which: u32, lane: Lane) {
    let start = which * 7u * PIECES;
    for (var i = number(lane); i < 2u * PIECES; i += WG) {
        // The groups of half a unit.
        let at = i / PIECES * 4u * PIECES + i % PIECES;
        let a = word_at(at);
        let b = word_at(at + PIECES);
        let c = word_at(at + PIECES * 2u);
        let d = word_at(at + PIECES * 3u);
        kept[start + i] = vec4(a.x, b.x, c.x, d.x);
        kept[start + 2u * PIECES + i] = vec4(a.y, b.y, c.y, d.y);
        kept[start + 4u * PIECES + i] = vec4(a.z, b.z, c.z, d.z);
    }
    for (var piece = number(lane); piece < PIECES; piece += WG) {
        kept[start + 6u * PIECES + piece] = bitcast<vec4<u32>>(about_piece(piece));
    }
}
