// F32: a unit is 32 neighbours.
fn load_unit(unit: u32) -> array<vec4<f32>, 8> {
    let at = p.plane0 / 4u + unit * 8u;
    return array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(w[at]), bitcast<vec4<f32>>(w[at + 1u]), bitcast<vec4<f32>>(w[at + 2u]), bitcast<vec4<f32>>(w[at + 3u]),
        bitcast<vec4<f32>>(w[at + 4u]), bitcast<vec4<f32>>(w[at + 5u]), bitcast<vec4<f32>>(w[at + 6u]), bitcast<vec4<f32>>(w[at + 7u]),
    );
}

fn unit_column(unit: u32, group: u32) -> u32 {
    return unit * 32u + group * 4u;
}
