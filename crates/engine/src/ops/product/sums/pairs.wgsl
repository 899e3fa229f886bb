// Pieces are two units that have their scales in common: those are decoded once, and whole numbers are summed over both.
fn sums_at(at: vec4<u32>, piece: u32) -> vec4<f32> {
    let about = about_piece(piece);
    let first = digits_at(piece, 0u);
    var x = unit_numbers(at.x * 2u, first);
    var y = unit_numbers(at.y * 2u, first);
    var z = unit_numbers(at.z * 2u, first);
    var w = unit_numbers(at.w * 2u, first);
    let second = digits_at(piece, 8u);
    x += unit_numbers(at.x * 2u + 1u, second);
    y += unit_numbers(at.y * 2u + 1u, second);
    z += unit_numbers(at.z * 2u + 1u, second);
    w += unit_numbers(at.w * 2u + 1u, second);
    return vec4(scaled(at.x, x, about), scaled(at.y, y, about), scaled(at.z, z, about), scaled(at.w, w, about));
}

// Products with the digits of x over the halves of a unit: for each half the high digit, then the others.
fn unit_numbers(unit: u32, x: array<vec4<u32>, 8>) -> vec4<i32> {
    let levels = levels_at(unit);
    let a = group_dot(levels[0], x[0]) + group_dot(levels[1], x[1]) + group_dot(levels[2], x[2]) + group_dot(levels[3], x[3]);
    let b = group_dot(levels[4], x[4]) + group_dot(levels[5], x[5]) + group_dot(levels[6], x[6]) + group_dot(levels[7], x[7]);
    return vec4(a.x, a.y * 256 + a.z, b.x, b.y * 256 + b.z);
}

fn scaled(pair: u32, numbers: vec4<i32>, about: vec4<f32>) -> f32 {
    let scales = pair_scales(pair);
    let floats = vec4<f32>(numbers);
    let sums = (floats.xz * 65536.0 + floats.yw) * about.z;
    return dot(scales.xy, sums) - dot(scales.zw, about.xy);
}
