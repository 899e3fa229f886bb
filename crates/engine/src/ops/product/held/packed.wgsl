// Weights as bytes, x as whole numbers of three digits with base 256: their products are exact, four at a time. The largest number of a
// unit has 23 bits, so that x is rounded as a float would be.
const LARGEST: f32 = 8323072.0;

struct Digits {
    // High, middle and low digits of a group in x, y and z.
    groups: array<vec4<u32>, 8>,
    // Sums over the halves of the unit, and what a one stands for.
    sums: vec2<f32>,
    one: f32,
}

fn hold_unit(unit: u32) {
    let x = shared_floats(unit);
    let a = max(max(abs(x[0]), abs(x[1])), max(abs(x[2]), abs(x[3])));
    let b = max(max(abs(x[4]), abs(x[5])), max(abs(x[6]), abs(x[7])));
    let four = max(a, b);
    let most = max(max(four.x, four.y), max(four.z, four.w));
    let each = select(0.0, LARGEST / most, most > 1e-30);
    let sums = column_of(x).sums;
    sh_units[unit] = vec4(sums.x + sums.y, sums.z + sums.w, most / LARGEST, 0.0);
    sh_x[unit] = digits(x[0] * each);
    sh_x[UNITS + unit] = digits(x[1] * each);
    sh_x[UNITS * 2u + unit] = digits(x[2] * each);
    sh_x[UNITS * 3u + unit] = digits(x[3] * each);
    sh_x[UNITS * 4u + unit] = digits(x[4] * each);
    sh_x[UNITS * 5u + unit] = digits(x[5] * each);
    sh_x[UNITS * 6u + unit] = digits(x[6] * each);
    sh_x[UNITS * 7u + unit] = digits(x[7] * each);
}

fn digits(quad: vec4<f32>) -> vec4<u32> {
    let number = vec4<i32>(round(quad));
    let low = ((number + vec4(128)) & vec4(255)) - vec4(128);
    let upper = (number - low) >> vec4(8u);
    let middle = ((upper + vec4(128)) & vec4(255)) - vec4(128);
    let high = (upper - middle) >> vec4(8u);
    return vec4(pack4xI8(high), pack4xI8(middle), pack4xI8(low), 0u);
}

fn column_at(unit: u32) -> Digits {
    let about = sh_units[unit];
    return Digits(shared_words(unit), about.xy, about.z);
}

fn unit_sum(unit: u32, x: Digits) -> f32 {
    let u = packed_at(unit);
    let a = group_dot(u.levels[0], x.groups[0]) + group_dot(u.levels[1], x.groups[1])
        + group_dot(u.levels[2], x.groups[2]) + group_dot(u.levels[3], x.groups[3]);
    let b = group_dot(u.levels[4], x.groups[4]) + group_dot(u.levels[5], x.groups[5])
        + group_dot(u.levels[6], x.groups[6]) + group_dot(u.levels[7], x.groups[7]);
    let sums = vec2(number_of(a), number_of(b)) * x.one;
    return dot(u.scale, sums) - dot(u.offset + u.scale * u.bias, x.sums);
}

fn group_dot(levels: u32, x: vec4<u32>) -> vec3<i32> {
    return vec3(dot4I8Packed(levels, x.x), dot4I8Packed(levels, x.y), dot4I8Packed(levels, x.z));
}

fn number_of(sums: vec3<i32>) -> f32 {
    return f32(sums.x) * 65536.0 + f32(sums.y * 256 + sums.z);
}
