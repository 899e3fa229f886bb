// Weights as packed int8, x as int8 hi/lo pairs.
//#use int8_dot
alias Weights = Packed;

struct Int8Column {
    groups: array<vec4<u32>, 4>,
    // Sums and scales of the unit's halves.
    sums: vec2<f32>,
    scales: vec2<f32>,
}

fn column_at(unit: u32) -> Int8Column {
    let stats = piece_stats(unit);
    return Int8Column(int8_at(unit, 0u), stats.xy, stats.zw);
}

fn weights_at(unit: u32) -> Weights {
    return packed_at(unit);
}

fn piece_sum(u: Weights, x: Int8Column) -> f32 {
    let sums = vec2<f32>(int8_sums(u.levels, x.groups)) * x.scales;
    return dot(u.scale, sums) - dot(u.offset + u.scale * u.bias, x.sums);
}
