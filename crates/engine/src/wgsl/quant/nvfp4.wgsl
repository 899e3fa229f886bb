// NVFP4: planes quants (32 bytes) | four 8-bit floats as scales (4). A unit is half a block: twice 8 consecutive weights in the low nibbles of 8
// bytes and the next 8 in the high ones; a nibble is a float of 4 bits.
// The values of E2M1, doubled to be integers, each plus 12.
const LEVELS = vec4(0x0f0e0d0cu, 0x18141210u, 0x090a0b0cu, 0x00040608u);

fn unit_at(unit: u32) -> Unit {
    let quants = w[p.plane0 / 4u + unit];
    let high = quants >> vec4(4u);
    let scales = word(p.plane1 + unit / 2u) >> (unit % 2u * 16u);
    let a = nvfp4_scale(scales & 255u);
    let b = nvfp4_scale((scales >> 8u) & 255u);
    let levels = array<vec4<f32>, 8>(
        look_up(LEVELS, quants.x) - 12.0, look_up(LEVELS, quants.y) - 12.0,
        look_up(LEVELS, high.x) - 12.0, look_up(LEVELS, high.y) - 12.0,
        look_up(LEVELS, quants.z) - 12.0, look_up(LEVELS, quants.w) - 12.0,
        look_up(LEVELS, high.z) - 12.0, look_up(LEVELS, high.w) - 12.0,
    );
    return Unit(levels, vec4(a, a, b, b), vec4(0.0));
}

// Half the value of an unsigned float of 4 + 3 bits, because the levels are doubled; NaN decodes to zero.
fn nvfp4_scale(byte: u32) -> f32 {
    let exponent = (byte >> 3u) & 15u;
    let mantissa = byte & 7u;
    let normal = bitcast<f32>(((exponent + 119u) << 23u) | (mantissa << 20u));
    return select(select(normal, f32(mantissa) / 1024.0, exponent == 0u), 0.0, byte == 127u);
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
