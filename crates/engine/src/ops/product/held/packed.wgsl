// Weights as bytes, x in digits.
//#use digits
alias Held = Packed;

struct Digits {
    groups: array<vec4<u32>, 8>,
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

fn unit_sum(u: Held, x: Digits) -> f32 {
    let a = group_dot(u.levels[0], x.groups[0]) + group_dot(u.levels[1], x.groups[1])
        + group_dot(u.levels[2], x.groups[2]) + group_dot(u.levels[3], x.groups[3]);
    let b = group_dot(u.levels[4], x.groups[4]) + group_dot(u.levels[5], x.groups[5])
        + group_dot(u.levels[6], x.groups[6]) + group_dot(u.levels[7], x.groups[7]);
    let sums = vec2(number_of(a), number_of(b)) * x.one;
    return dot(u.scale, sums) - dot(u.offset + u.scale * u.bias, x.sums);
}

fn number_of(sums: vec3<i32>) -> f32 {
    return f32(sums.x) * 65536.0 + f32(sums.y * 256 + sums.z);
}
