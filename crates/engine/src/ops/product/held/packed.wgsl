// Weights as bytes, x in digits.
//#use digits
alias Held = Packed;

struct Digits {
    groups: array<vec4<u32>, 4>,
    // Sums over the halves of the unit, and what a one stands for.
    sums: vec2<f32>,
    one: f32,
}

fn column_at(unit: u32) -> Digits {
    let about = about_piece(unit);
    return Digits(digits_at(unit, 0u), about.xy, about.z);
}

fn held_at(unit: u32) -> Held {
    return packed_at(unit);
}

fn piece_sum(u: Held, x: Digits) -> f32 {
    let sums = vec2<f32>(digit_sums(u.levels, x.groups)) * x.one;
    return dot(u.scale, sums) - dot(u.offset + u.scale * u.bias, x.sums);
}
