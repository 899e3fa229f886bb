// IQ2_XXS: planes 8 times four entry indices and a word of four sign codes and a scale (64 bytes) | d (2) | code book. A unit is 32
// consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let entries = word(p.plane0 + unit * 2u);
    let codes = word(p.plane0 + unit * 2u + 1u);
    let d = half_at(p.plane1, unit / 8u) * (0.5 + f32(codes >> 28u)) * 0.25;
    let e = vec4(book(p.plane2, byte_of(entries, 0u)), book(p.plane2, byte_of(entries, 1u)),
        book(p.plane2, byte_of(entries, 2u)), book(p.plane2, byte_of(entries, 3u)));
    let s = vec4(even_signs(codes), even_signs(codes >> 7u), even_signs(codes >> 14u), even_signs(codes >> 21u));
    return Unit(iq2_unit(e, s), vec4(d), vec4(0.0));
}
