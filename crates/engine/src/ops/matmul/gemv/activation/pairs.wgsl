// Pieces are two units that share their scales, which are decoded once; integers are summed over both units.
//#use int8_dot
struct Pair {
    first: array<u32, 8>,
    second: array<u32, 8>,
    scales: vec4<f32>,
}
alias Weights = Pair;

struct Int8Column {
    first: array<vec4<u32>, 4>,
    second: array<vec4<u32>, 4>,
    stats: vec4<f32>,
}

fn column_at(pair: u32) -> Int8Column {
    return Int8Column(int8_at(pair, 0u), int8_at(pair, 8u), piece_stats(pair));
}

fn weights_at(pair: u32) -> Weights {
    return Pair(levels_at(pair * 2u), levels_at(pair * 2u + 1u), pair_scales(pair));
}

fn piece_sum(pair: Weights, x: Int8Column) -> f32 {
    let sums = vec2<f32>(int8_sums(pair.first, x.first) + int8_sums(pair.second, x.second));
    return dot(pair.scales.xy, sums) * x.stats.z - dot(pair.scales.zw, x.stats.xy);
}
