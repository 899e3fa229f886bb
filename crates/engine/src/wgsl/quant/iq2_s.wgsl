// IQ2_S: planes lower bits of entry indices and signs (64 bytes) | upper bits and 4-bit scales (16) | d (2) | code book. A unit is 32
// consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let block = unit / 8u;
    let sub = unit % 8u;
    let low = word(p.plane0 + block * 16u + sub);
    let signs = word(p.plane0 + block * 16u + 8u + sub);
    let high = byte_at(p.plane1 + block * 4u, sub);
    let scales = byte_at(p.plane1 + block * 4u + 2u, sub);
    let d = half_at(p.plane2, block);
    let a = d * (0.5 + f32(scales & 15u)) * 0.25;
    let b = d * (0.5 + f32(scales >> 4u)) * 0.25;
    let entries = (vec4(low) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u);
    let i = entries | (pairs4(high) << vec4(8u));
    let e = vec4(book(p.plane3, i.x), book(p.plane3, i.y), book(p.plane3, i.z), book(p.plane3, i.w));
    let s = vec4(byte_of(signs, 0u), byte_of(signs, 1u), byte_of(signs, 2u), byte_of(signs, 3u));
    return Unit(iq2_unit(e, s), vec4(a, a, b, b), vec4(0.0));
}
