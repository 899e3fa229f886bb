// IQ3_S: planes lower bits of 64 entry indices (64 bytes) | their ninth bits, signs and 4-bit scales (44) | d (2) | code book. A unit is 32
// consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let block = unit / 8u;
    let sub = unit % 8u;
    let at = p.plane1 + block * 11u;
    let ninth = byte_at(at, sub);
    let signs = word(at + 2u + sub);
    let scale = (word(at + 10u) >> (sub * 4u)) & 15u;
    let d = half_at(p.plane2, block) * (1.0 + 2.0 * f32(scale));
    let first = word(p.plane0 + unit * 2u);
    let second = word(p.plane0 + unit * 2u + 1u);
    let levels = array<vec4<f32>, 8>(
        iq3_levels(byte_of(first, 0u), ninth, signs), iq3_levels(byte_of(first, 1u), ninth >> 1u, signs >> 4u),
        iq3_levels(byte_of(first, 2u), ninth >> 2u, signs >> 8u), iq3_levels(byte_of(first, 3u), ninth >> 3u, signs >> 12u),
        iq3_levels(byte_of(second, 0u), ninth >> 4u, signs >> 16u), iq3_levels(byte_of(second, 1u), ninth >> 5u, signs >> 20u),
        iq3_levels(byte_of(second, 2u), ninth >> 6u, signs >> 24u), iq3_levels(byte_of(second, 3u), ninth >> 7u, signs >> 28u),
    );
    return Unit(levels, vec4(d), vec4(0.0));
}

// Odd magnitudes up to 15.
fn iq3_levels(entry: u32, ninth: u32, signs: u32) -> vec4<f32> {
    let i = triples4(book(p.plane3, entry | ((ninth & 1u) << 8u)));
    return signed4(i * 2u + 1u, signs);
}
