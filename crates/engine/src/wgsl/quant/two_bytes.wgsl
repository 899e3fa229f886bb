// 16-bit floats: a unit is 32 consecutive weights. The format defines decode4(words), which decodes four weights.
fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 / 4u + unit * 4u;
    let a = w[at];
    let b = w[at + 1u];
    let c = w[at + 2u];
    let d = w[at + 3u];
    let levels = array<vec4<f32>, 8>(
        decode4(a.xy), decode4(a.zw), decode4(b.xy), decode4(b.zw), decode4(c.xy), decode4(c.zw), decode4(d.xy), decode4(d.zw),
    );
    return Unit(levels, vec4(1.0), vec4(0.0));
}

// Four consecutive weights as stored, and as f32.
alias Raw = vec2<u32>;

fn raw_at(unit: u32, group: u32) -> Raw {
    let two = w[p.plane0 / 4u + unit * 4u + group / 2u];
    return select(two.xy, two.zw, group % 2u == 1u);
}

// Groups 2i and 2i + 1 of a unit, fetched by one load.
struct RawPair {
    first: Raw,
    second: Raw,
}

fn raw_pair_at(unit: u32, i: u32) -> RawPair {
    let two = w[p.plane0 / 4u + unit * 4u + i];
    return RawPair(two.xy, two.zw);
}

fn numbers(raw: Raw) -> vec4<f32> {
    return decode4(raw);
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
