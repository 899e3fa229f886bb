// MXFP4: planes quants (16 bytes) | exponent (1). A unit is a block: 16 consecutive weights in the low nibbles, the next 16 in the high ones; a
// nibble is a float of 4 bits.
// The values of E2M1, doubled to be integers, each plus 12.
const LEVELS = vec4(0x0f0e0d0cu, 0x18141210u, 0x090a0b0cu, 0x00040608u);

fn unit_at(unit: u32) -> Unit {
    let quants = w[p.plane0 / 4u + unit];
    let high = quants >> vec4(4u);
    let exponent = (word(p.plane1 + unit / 4u) >> (unit % 4u * 8u)) & 255u;
    // The scale 2^(exponent - 128) is subnormal for exponents 0 and 1, and a device may flush it to zero. So small scales are multiplied
    // by 16 and the levels divided by it: both factors are then normal.
    let small = exponent < 128u;
    let d = bitcast<f32>(select(exponent - 1u, exponent + 3u, small) << 23u);
    let level = select(1.0, 0.0625, small);
    let levels = array<vec4<f32>, 8>(
        float4(quants.x, level), float4(quants.y, level), float4(quants.z, level), float4(quants.w, level),
        float4(high.x, level), float4(high.y, level), float4(high.z, level), float4(high.w, level),
    );
    return Unit(levels, vec4(d), vec4(0.0));
}

fn float4(nibbles: u32, level: f32) -> vec4<f32> {
    return (look_up(LEVELS, nibbles) - 12.0) * level;
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
