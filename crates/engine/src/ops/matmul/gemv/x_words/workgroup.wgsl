// Eight vec4s of a piece of staged x.
//#use x_memory
fn staged_words(piece: u32, first: u32) -> array<vec4<u32>, 8> {
    let at = first * PIECES + piece;
    return array<vec4<u32>, 8>(
        word_at(at), word_at(at + PIECES), word_at(at + PIECES * 2u), word_at(at + PIECES * 3u),
        word_at(at + PIECES * 4u), word_at(at + PIECES * 5u), word_at(at + PIECES * 6u), word_at(at + PIECES * 7u),
    );
}

// Int8 hi/lo pairs of a piece, two vec4s per word.
fn int8_at(piece: u32, first: u32) -> array<vec4<u32>, 4> {
    let at = first * PIECES + piece;
    return array<vec4<u32>, 4>(word_at(at), word_at(at + PIECES * 2u), word_at(at + PIECES * 4u), word_at(at + PIECES * 6u));
}

fn staged_floats(piece: u32, first: u32) -> array<vec4<f32>, 8> {
    let words = staged_words(piece, first);
    return array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(words[0]), bitcast<vec4<f32>>(words[1]), bitcast<vec4<f32>>(words[2]), bitcast<vec4<f32>>(words[3]),
        bitcast<vec4<f32>>(words[4]), bitcast<vec4<f32>>(words[5]), bitcast<vec4<f32>>(words[6]), bitcast<vec4<f32>>(words[7]),
    );
}
