// IQ1_M: planes lower bits of entry indices (32 bytes), nibbles of upper bits and a sign (16), 3-bit scales and d (8) | code book. A unit is 32
// consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 + unit / 8u * 14u;
    let sub = unit % 8u;
    let low = (vec4(word(at + sub)) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u);
    let nibbles = vec4(word(at + 8u + sub / 2u) >> (sub % 2u * 16u)) >> vec4(0u, 4u, 8u, 12u);
    let i = low | ((nibbles & vec4(7u)) << vec4(8u));
    let e = vec4(book(p.plane1, i.x), book(p.plane1, i.y), book(p.plane1, i.z), book(p.plane1, i.w));
    let first = word(at + 12u);
    let second = word(at + 13u);
    // Each half word has four bits of d in its top bits, the lowest first.
    let bits = ((first >> 12u) & 15u) | ((first >> 28u) << 4u) | (((second >> 12u) & 15u) << 8u) | ((second >> 28u) << 12u);
    let d = unpack2x16float(bits).x;
    let scales = select(first, second, sub >= 4u) >> (sub / 2u % 2u * 16u + sub % 2u * 6u);
    let a = d * f32(2u * (scales & 7u) + 1u);
    let b = d * f32(2u * ((scales >> 3u) & 7u) + 1u);
    return Unit(iq1_unit(e, (nibbles >> vec4(3u)) & vec4(1u)), vec4(a, a, b, b), vec4(0.0));
}
