// IQ3_XXS: planes 64 entry indices and 8 words of four sign codes and a scale (96 bytes) | d (2) | code book. A unit is 32 consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 + unit / 8u * 24u;
    let codes = word(at + 16u + unit % 8u);
    let d = half_at(p.plane1, unit / 8u) * (0.5 + f32(codes >> 28u)) * 0.5;
    let first = word(at + unit % 8u * 2u);
    let second = word(at + unit % 8u * 2u + 1u);
    let s = vec4(even_signs(codes), even_signs(codes >> 7u), even_signs(codes >> 14u), even_signs(codes >> 21u));
    let levels = array<vec4<f32>, 8>(
        iq3_levels(byte_of(first, 0u), s.x), iq3_levels(byte_of(first, 1u), s.x >> 4u),
        iq3_levels(byte_of(first, 2u), s.y), iq3_levels(byte_of(first, 3u), s.y >> 4u),
        iq3_levels(byte_of(second, 0u), s.z), iq3_levels(byte_of(second, 1u), s.z >> 4u),
        iq3_levels(byte_of(second, 2u), s.w), iq3_levels(byte_of(second, 3u), s.w >> 4u),
    );
    return Unit(levels, vec4(d), vec4(0.0));
}

// Magnitudes 4, 12, 20, 28, 36, 44, 52 and 62.
fn iq3_levels(entry: u32, signs: u32) -> vec4<f32> {
    let i = triples4(book(p.plane2, entry));
    return signed4(i * 8u + 4u + ((i + 1u) >> vec4(3u)) * 2u, signs);
}
