// Q6_K: planes low nibbles (128 bytes) | upper pairs of bits (64) | signed scales (16) | d (2). A unit is 16 bytes of nibbles:
// 16 consecutive weights in the low ones, and in the high ones the 16 weights 64 further on.
const MIDDLE: f32 = 32.0;
const SIGNED: bool = false;

fn packed_at(unit: u32) -> Packed {
    let block = unit / 8u;
    // Sub-blocks of 16 weights, eight in each half of the block; this unit covers sub-blocks `sub` and `sub + 4` of its half.
    let half_block = unit % 8u / 4u;
    let sub = unit % 4u;
    let quants = w[p.plane0 / 4u + unit];
    let pairs = w[p.plane1 / 4u + block * 4u + half_block * 2u + unit % 2u] >> vec4(sub / 2u * 2u);
    let scales = w[p.plane2 / 4u + block];
    let ours = select(scales.xy, scales.zw, half_block == 1u);
    let d = half_at(p.plane3, block);
    let a = signed_byte(ours.x, sub) * d;
    let b = signed_byte(ours.y, sub) * d;
    let low = (quants & vec4(0x0f0f0f0fu)) | ((pairs & vec4(0x03030303u)) << vec4(4u));
    let high = ((quants >> vec4(4u)) & vec4(0x0f0f0f0fu)) | (pairs & vec4(0x30303030u));
    let levels = array<u32, 8>(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
    return Packed(levels, 32.0, vec2(a, b), vec2(0.0));
}

fn unit_at(unit: u32) -> Unit {
    return unpacked_less(packed_at(unit), 32.0);
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit / 4u * 128u + unit % 4u * 16u + group / 4u * 64u + group % 4u * 4u;
}
