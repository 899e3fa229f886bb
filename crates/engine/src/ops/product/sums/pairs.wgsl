// Pieces are two units that have their scales in common: those are decoded once, and whole numbers are summed over both.
struct Pair {
    first: array<u32, 8>,
    second: array<u32, 8>,
    scales: vec4<f32>,
}

struct Rows {
    x: Pair,
    y: Pair,
    z: Pair,
    w: Pair,
}

fn pair_at(pair: u32) -> Pair {
    return Pair(levels_at(pair * 2u), levels_at(pair * 2u + 1u), pair_scales(pair));
}

fn rows_at(at: vec4<u32>) -> Rows {
    var rows: Rows;
    rows.x = pair_at(at.x);
    if ROWS > 1u {
        rows.y = pair_at(at.y);
    }
    if ROWS > 2u {
        rows.z = pair_at(at.z);
        rows.w = pair_at(at.w);
    }
    return rows;
}

fn sums_with(rows: Rows, piece: u32) -> vec4<f32> {
    let about = about_piece(piece);
    let first = digits_at(piece, 0u);
    let second = digits_at(piece, 8u);
    var sums = vec4(pair_sum(rows.x, first, second, about), 0.0, 0.0, 0.0);
    if ROWS > 1u {
        sums.y = pair_sum(rows.y, first, second, about);
    }
    if ROWS > 2u {
        sums.z = pair_sum(rows.z, first, second, about);
        sums.w = pair_sum(rows.w, first, second, about);
    }
    return sums;
}

fn sums_at(at: vec4<u32>, piece: u32) -> vec4<f32> {
    return sums_with(rows_at(at), piece);
}

fn pair_sum(pair: Pair, first: array<vec4<u32>, 4>, second: array<vec4<u32>, 4>, about: vec4<f32>) -> f32 {
    let numbers = vec2<f32>(digit_sums(pair.first, first) + digit_sums(pair.second, second));
    return dot(pair.scales.xy, numbers) * about.z - dot(pair.scales.zw, about.xy);
}
