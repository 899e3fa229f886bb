// Q3_K: planes low bits (64 bytes) | third bits (32) | 6-bit scales (12) | d (2). A unit is 8 bytes of low bits: each holds four
// weights with a stride of 32, so 8 consecutive weights in each of four sub-blocks.
fn unit_at(unit: u32) -> Unit {
    let block = unit / 8u;
    let second = unit % 8u / 4u;
    let four = w[p.plane0 / 4u + unit / 2u];
    let quants = select(four.xy, four.zw, unit % 2u == 1u);
    let masks = w[p.plane1 / 4u + block * 2u + unit % 4u / 2u];
    let third = select(masks.xy, masks.zw, unit % 2u == 1u) >> vec2(second * 4u);
    let d = half_at(p.plane3, block);
    let at = p.plane2 + block * 3u;
    // Of the 8 scales of this half of the block, every other one from the first or second.
    let shift = unit % 4u / 2u * 8u;
    let low = (vec2(word(at), word(at + 1u)) >> vec2(shift + second * 4u)) & vec2(0x0f0f0f0fu);
    let high = vec2(word(at + 2u)) >> vec2(shift + second * 4u, shift + second * 4u + 2u);
    let scales = low | ((high & vec2(0x03030303u)) << vec2(4u));
    let s0 = q3_k_scale(scales.x, d);
    let s1 = q3_k_scale(scales.x >> 16u, d);
    let s2 = q3_k_scale(scales.y, d);
    let s3 = q3_k_scale(scales.y >> 16u, d);
    let q0 = q3_k_quants(quants, third);
    let q1 = q3_k_quants(quants >> vec2(2u), third >> vec2(1u));
    let q2 = q3_k_quants(quants >> vec2(4u), third >> vec2(2u));
    let q3 = q3_k_quants(quants >> vec2(6u), third >> vec2(3u));
    let levels = array<vec4<f32>, 8>(
        bytes4(q0.x) - 4.0, bytes4(q0.y) - 4.0, bytes4(q1.x) - 4.0, bytes4(q1.y) - 4.0,
        bytes4(q2.x) - 4.0, bytes4(q2.y) - 4.0, bytes4(q3.x) - 4.0, bytes4(q3.y) - 4.0,
    );
    return Unit(levels, vec4(s0, s1, s2, s3), vec4(0.0));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit / 4u * 128u + unit % 4u * 8u + group / 2u * 32u + group % 2u * 4u;
}

fn q3_k_scale(byte: u32, d: f32) -> f32 {
    return (f32(byte & 63u) - 32.0) * d;
}

fn q3_k_quants(low: vec2<u32>, third: vec2<u32>) -> vec2<u32> {
    return (low & vec2(0x03030303u)) | ((third & vec2(0x01010101u)) << vec2(2u));
}
