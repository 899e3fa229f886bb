// Weights as bytes, x in digits.
//#use digits
alias Held = Packed;

struct Digits {
    groups: array<vec4<u32>, 4>,
    // Of the halves of the unit: sums, and what a one stands for.
    sums: vec2<f32>,
    ones: vec2<f32>,
}

fn column_at(unit: u32) -> Digits {
    let about = about_piece(unit);
    return Digits(digits_at(unit, 0u), about.xy, about.zw);
}

fn held_at(unit: u32) -> Held {
    return packed_at(unit);
}

fn piece_sum(u: Held, x: Digits) -> f32 {
    let sums = vec2<f32>(digit_sums(u.levels, x.groups)) * x.ones;
    return dot(u.scale, sums) - dot(u.offset + u.scale * u.bias, x.sums);
}
