// x as int8 hi/lo pairs: a piece is two units with one scale.
//#use slot_int8
fn slot_dot(at: u32, piece: u32) -> f32 {
    let x = column_at(piece);
    let one = piece * 2u;
    let two = one + 1u;
    return (int8_half(at, one, 0u, x.first[0], x.first[1]) + int8_half(at, one, 4u, x.first[2], x.first[3])
        + int8_half(at, two, 0u, x.second[0], x.second[1]) + int8_half(at, two, 4u, x.second[2], x.second[3])) * x.stats.z;
}
