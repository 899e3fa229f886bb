// Pieces are units.
fn sums_at(at: vec4<u32>, piece: u32) -> vec4<f32> {
    let column = column_at(piece);
    var sums = vec4(unit_sum(at.x, column), 0.0, 0.0, 0.0);
    if ROWS > 1u {
        sums.y = unit_sum(at.y, column);
    }
    if ROWS > 2u {
        sums.z = unit_sum(at.z, column);
        sums.w = unit_sum(at.w, column);
    }
    return sums;
}
