// Q4_K: planes quants (128 bytes) | d, dmin, 6-bit scales (16). A unit is 16 bytes of quants: 16 consecutive weights in the low
// nibbles, and in the high nibbles the 16 weights 32 further on.
const MIDDLE: f32 = 8.0;
const SIGNED: bool = false;

// The data of a unit: its quants and the block's header.
struct Words {
    quants: vec4<u32>,
    head: vec4<u32>,
}

fn words_of(unit: u32) -> Words {
    return Words(w[p.plane0 / 4u + unit], w[p.plane1 / 4u + unit / 8u]);
}

fn packed_of(words: Words, unit: u32) -> Packed {
    let scales = scales_of(words.head, unit / 2u);
    return Packed(levels_of(words.quants), 0.0, scales.xy, scales.zw);
}

fn levels_at(unit: u32) -> array<u32, 8> {
    return levels_of(w[p.plane0 / 4u + unit]);
}

fn levels_of(quants: vec4<u32>) -> array<u32, 8> {
    let low = quants & vec4(0x0f0f0f0fu);
    let high = (quants >> vec4(4u)) & vec4(0x0f0f0f0fu);
    return array<u32, 8>(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
}

fn pair_scales(pair: u32) -> vec4<f32> {
    return scales_of(w[p.plane1 / 4u + pair / 4u], pair);
}

fn scales_of(head: vec4<u32>, pair: u32) -> vec4<f32> {
    return k_scales(head, pair % 4u * 2u) * unpack2x16float(head.x).xxyy;
}

fn packed_at(unit: u32) -> Packed {
    return packed_of(words_of(unit), unit);
}

fn unit_at(unit: u32) -> Unit {
    return unpacked(packed_at(unit));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit / 2u * 64u + unit % 2u * 16u + group / 4u * 32u + group % 4u * 4u;
}
