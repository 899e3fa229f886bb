// Pieces are two units that have their scales in common: those are decoded once, and whole numbers are summed over both.
//#use digits
struct Pair {
    first: array<u32, 8>,
    second: array<u32, 8>,
    scales: vec4<f32>,
}
alias Held = Pair;

struct Digits {
    first: array<vec4<u32>, 4>,
    second: array<vec4<u32>, 4>,
    about: vec4<f32>,
}

fn column_at(pair: u32) -> Digits {
    return Digits(digits_at(pair, 0u), digits_at(pair, 8u), about_piece(pair));
}

fn held_at(pair: u32) -> Held {
    return Pair(levels_at(pair * 2u), levels_at(pair * 2u + 1u), pair_scales(pair));
}

fn piece_sum(pair: Held, x: Digits) -> f32 {
    let numbers = vec2<f32>(digit_sums(pair.first, x.first) + digit_sums(pair.second, x.second));
    return dot(pair.scales.xy, numbers) * x.about.z - dot(pair.scales.zw, x.about.xy);
}
