// F32: a unit is 32 consecutive weights.
fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 / 4u + unit * 8u;
    let levels = array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(w[at]), bitcast<vec4<f32>>(w[at + 1u]), bitcast<vec4<f32>>(w[at + 2u]), bitcast<vec4<f32>>(w[at + 3u]),
        bitcast<vec4<f32>>(w[at + 4u]), bitcast<vec4<f32>>(w[at + 5u]), bitcast<vec4<f32>>(w[at + 6u]), bitcast<vec4<f32>>(w[at + 7u]),
    );
    return Unit(levels, vec4(1.0), vec4(0.0));
}

// Four consecutive weights as stored, and as f32.
alias Raw = vec4<u32>;

fn raw_at(unit: u32, group: u32) -> Raw {
    return w[p.plane0 / 4u + unit * 8u + group];
}

// Groups 2i and 2i + 1 of a unit.
struct RawPair {
    first: Raw,
    second: Raw,
}

fn raw_pair_at(unit: u32, i: u32) -> RawPair {
    return RawPair(raw_at(unit, 2u * i), raw_at(unit, 2u * i + 1u));
}

fn numbers(raw: Raw) -> vec4<f32> {
    return bitcast<vec4<f32>>(raw);
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
