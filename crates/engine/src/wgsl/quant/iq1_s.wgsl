// IQ1_S: planes lower bits of entry indices (32 bytes) and half words of upper bits, a scale and a sign (16) | d (2) | code book. A unit is 32
// consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 + unit / 8u * 12u;
    let sub = unit % 8u;
    let low = (vec4(word(at + sub)) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u);
    let upper = (word(at + 8u + sub / 2u) >> (sub % 2u * 16u)) & 0xffffu;
    let d = half_at(p.plane1, unit / 8u) * f32(2u * ((upper >> 12u) & 7u) + 1u);
    let i = low | (triples4(upper) << vec4(8u));
    let e = vec4(book(p.plane2, i.x), book(p.plane2, i.y), book(p.plane2, i.z), book(p.plane2, i.w));
    return Unit(iq1_unit(e, vec4(upper >> 15u)), vec4(d), vec4(0.0));
}
