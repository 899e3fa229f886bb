// IQ2_XS: planes 32 half words of an entry index and a sign code (64 bytes) | 4-bit scales (8) | d (2) | code book. A unit is 32 consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let ab = word(p.plane0 + unit * 2u);
    let cd = word(p.plane0 + unit * 2u + 1u);
    let words = vec4(ab & 0xffffu, ab >> 16u, cd & 0xffffu, cd >> 16u);
    let block = unit / 8u;
    let scales = byte_at(p.plane1 + block * 2u, unit % 8u);
    let d = half_at(p.plane2, block);
    let a = d * (0.5 + f32(scales & 15u)) * 0.25;
    let b = d * (0.5 + f32(scales >> 4u)) * 0.25;
    let e = vec4(book(p.plane3, words.x & 511u), book(p.plane3, words.y & 511u),
        book(p.plane3, words.z & 511u), book(p.plane3, words.w & 511u));
    let s = vec4(even_signs(words.x >> 9u), even_signs(words.y >> 9u), even_signs(words.z >> 9u), even_signs(words.w >> 9u));
    return Unit(iq2_unit(e, s), vec4(a, a, b, b), vec4(0.0));
}
