// Dot products of up to four rows of a weight with the same piece of x, which the part `activation` defines.
struct Rows {
    x: Weights,
    y: Weights,
    z: Weights,
    w: Weights,
}

fn rows_at(at: vec4<u32>) -> Rows {
    var rows: Rows;
    rows.x = weights_at(at.x);
    if ROWS > 1u {
        rows.y = weights_at(at.y);
    }
    if ROWS > 2u {
        rows.z = weights_at(at.z);
        rows.w = weights_at(at.w);
    }
    return rows;
}

fn sums_with(rows: Rows, piece: u32) -> vec4<f32> {
    let column = column_at(piece);
    var sums = vec4(piece_sum(rows.x, column), 0.0, 0.0, 0.0);
    if ROWS > 1u {
        sums.y = piece_sum(rows.y, column);
    }
    if ROWS > 2u {
        sums.z = piece_sum(rows.z, column);
        sums.w = piece_sum(rows.w, column);
    }
    return sums;
}

fn sums_at(at: vec4<u32>, piece: u32) -> vec4<f32> {
    return sums_with(rows_at(at), piece);
}
