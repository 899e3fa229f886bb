// Rows of a weight with the same piece of x: what a piece is, and how one is held, is a part.
struct Rows {
    x: Held,
    y: Held,
    z: Held,
    w: Held,
}

fn rows_at(at: vec4<u32>) -> Rows {
    var rows: Rows;
    rows.x = held_at(at.x);
    if ROWS > 1u {
        rows.y = held_at(at.y);
    }
    if ROWS > 2u {
        rows.z = held_at(at.z);
        rows.w = held_at(at.w);
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
