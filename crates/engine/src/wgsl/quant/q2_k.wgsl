// Q2_K: planes quants (64 bytes) | 4-bit scales and minima (16) | d, dmin (4). A unit is 8 bytes of quants: each holds four weights
// with a stride of 32, so 8 consecutive weights in each of four sub-blocks.
fn unit_at(unit: u32) -> Unit {
    let four = w[p.plane0 / 4u + unit / 2u];
    let quants = select(four.xy, four.zw, unit % 2u == 1u);
    let d = unpack2x16float(word(p.plane2 + unit / 8u));
    // Of the 8 sub-blocks of 16 weights in this half of the block, every other one from the first or second.
    let scales = w[p.plane1 / 4u + unit / 8u];
    let shift = unit % 4u / 2u * 8u;
    let ours = select(scales.xy, scales.zw, unit % 8u >= 4u) >> vec2(shift);
    let s0 = q2_k_scales(ours.x, d);
    let s1 = q2_k_scales(ours.x >> 16u, d);
    let s2 = q2_k_scales(ours.y, d);
    let s3 = q2_k_scales(ours.y >> 16u, d);
    let q0 = quants & vec2(0x03030303u);
    let q1 = (quants >> vec2(2u)) & vec2(0x03030303u);
    let q2 = (quants >> vec2(4u)) & vec2(0x03030303u);
    let q3 = (quants >> vec2(6u)) & vec2(0x03030303u);
    let levels = array<vec4<f32>, 8>(
        bytes4(q0.x), bytes4(q0.y), bytes4(q1.x), bytes4(q1.y),
        bytes4(q2.x), bytes4(q2.y), bytes4(q3.x), bytes4(q3.y),
    );
    return Unit(levels, vec4(s0.x, s1.x, s2.x, s3.x), vec4(s0.y, s1.y, s2.y, s3.y));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit / 4u * 128u + unit % 4u * 8u + group / 2u * 32u + group % 2u * 4u;
}

fn q2_k_scales(byte: u32, d: vec2<f32>) -> vec2<f32> {
    return vec2(f32(byte & 15u), f32((byte >> 4u) & 15u)) * d;
}
