// F16: a unit is 32 neighbours.
fn unit_at(unit: u32) -> Unit {
    let at = p.plane0 / 4u + unit * 4u;
    let a = w[at];
    let b = w[at + 1u];
    let c = w[at + 2u];
    let d = w[at + 3u];
    let levels = array<vec4<f32>, 8>(
        halves(a.xy), halves(a.zw), halves(b.xy), halves(b.zw), halves(c.xy), halves(c.zw), halves(d.xy), halves(d.zw),
    );
    return Unit(levels, vec4(1.0), vec4(0.0));
}

fn halves(words: vec2<u32>) -> vec4<f32> {
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}

// A group of four as it is stored, and as numbers.
alias Raw = vec2<u32>;

fn raw_at(unit: u32, group: u32) -> Raw {
    let two = w[p.plane0 / 4u + unit * 4u + group / 2u];
    return select(two.xy, two.zw, group % 2u == 1u);
}

// Groups 2i and 2i + 1, which one load fetches.
struct RawPair {
    first: Raw,
    second: Raw,
}

fn raw_pair_at(unit: u32, i: u32) -> RawPair {
    let two = w[p.plane0 / 4u + unit * 4u + i];
    return RawPair(two.xy, two.zw);
}

fn numbers(raw: Raw) -> vec4<f32> {
    return halves(raw);
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
