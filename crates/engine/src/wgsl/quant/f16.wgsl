// F16: a unit is 32 neighbours.
fn load_unit(unit: u32) -> array<vec4<f32>, 8> {
    let at = p.plane0 / 4u + unit * 4u;
    let a = w[at];
    let b = w[at + 1u];
    let c = w[at + 2u];
    let d = w[at + 3u];
    return array<vec4<f32>, 8>(
        halves(a.xy), halves(a.zw), halves(b.xy), halves(b.zw), halves(c.xy), halves(c.zw), halves(d.xy), halves(d.zw),
    );
}

fn halves(words: vec2<u32>) -> vec4<f32> {
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
