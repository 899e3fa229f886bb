// Q4_K: planes quants (128 bytes) | d, dmin, 6-bit scales (16 bytes). A unit is 16 bytes of quants: 16 neighbours in the low
// nibbles, and in the high nibbles the 16 that lie 32 further on.
fn load_unit(unit: u32) -> array<vec4<f32>, 8> {
    let quants = w[p.plane0 / 4u + unit];
    let head = w[p.plane1 / 4u + unit / 8u];
    let d = unpack2x16float(head.x);
    let chunk = (unit % 8u) / 2u;
    let low = q4_k_scales(head, chunk * 2u) * d;
    let high = q4_k_scales(head, chunk * 2u + 1u) * d;
    let q0 = quants & vec4(0x0f0f0f0fu);
    let q1 = (quants >> vec4(4u)) & vec4(0x0f0f0f0fu);
    return array<vec4<f32>, 8>(
        bytes4(q0.x) * low.x - low.y, bytes4(q0.y) * low.x - low.y, bytes4(q0.z) * low.x - low.y, bytes4(q0.w) * low.x - low.y,
        bytes4(q1.x) * high.x - high.y, bytes4(q1.y) * high.x - high.y, bytes4(q1.z) * high.x - high.y, bytes4(q1.w) * high.x - high.y,
    );
}

fn unit_column(unit: u32, group: u32) -> u32 {
    let part = unit % 8u;
    return unit / 8u * 256u + part / 2u * 64u + part % 2u * 16u + group / 4u * 32u + group % 4u * 4u;
}

// Scale and minimum of sub-block s, packed in the 12 bytes behind d and dmin.
fn q4_k_scales(head: vec4<u32>, s: u32) -> vec2<f32> {
    let shift = (s % 4u) * 8u;
    let a = (head.y >> shift) & 255u;
    let b = (head.z >> shift) & 255u;
    let c = (head.w >> shift) & 255u;
    let late = s >= 4u;
    let scale = select(a & 63u, (c & 15u) | ((a >> 6u) << 4u), late);
    let minimum = select(b & 63u, (c >> 4u) | ((b >> 6u) << 4u), late);
    return vec2(f32(scale), f32(minimum));
}
