// Weights as bytes, x as int8 hi/lo pairs.
//#use int8_dot
alias Weights = Packed;

struct Int8Column {
    groups: array<vec4<u32>, 4>,
    // Of the halves of the unit: sums and scales.
    sums: vec2<f32>,
    ones: vec2<f32>,
}

fn column_at(unit: u32) -> Int8Column {
    let about = piece_stats(unit);
    return Int8Column(int8_at(unit, 0u), about.xy, about.zw);
}

fn weights_at(unit: u32) -> Weights {
    return packed_at(unit);
}

fn piece_sum(u: Weights, x: Int8Column) -> f32 {
    let sums = vec2<f32>(int8_sums(u.levels, x.groups)) * x.ones;
    return dot(u.scale, sums) - dot(u.offset + u.scale * u.bias, x.sums);
}
