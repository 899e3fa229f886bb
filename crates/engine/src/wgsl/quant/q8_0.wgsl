// Q8_0: planes quants (32 bytes) | d (2). A unit is a block: 32 consecutive weights.
const MIDDLE: f32 = 0.0;
const SIGNED: bool = true;

fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 / 4u + unit * 2u;
    // A signed byte with its sign bit flipped, read as unsigned, is the value plus 128.
    let a = w[at] ^ vec4(0x80808080u);
    let b = w[at + 1u] ^ vec4(0x80808080u);
    let d = half_at(p.plane1, unit);
    let levels = array<vec4<f32>, 8>(
        bytes4(a.x) - 128.0, bytes4(a.y) - 128.0, bytes4(a.z) - 128.0, bytes4(a.w) - 128.0,
        bytes4(b.x) - 128.0, bytes4(b.y) - 128.0, bytes4(b.z) - 128.0, bytes4(b.w) - 128.0,
    );
    return Unit(levels, vec4(d), vec4(0.0));
}

fn packed_at(unit: u32) -> Packed {
    let at = p.plane0 / 4u + unit * 2u;
    let a = w[at];
    let b = w[at + 1u];
    let levels = array<u32, 8>(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
    return Packed(levels, 0.0, vec2(half_at(p.plane1, unit)), vec2(0.0));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
