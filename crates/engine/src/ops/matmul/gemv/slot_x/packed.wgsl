// x as int8 hi/lo pairs: a piece is a unit, whose halves have a scale each.
//#use slot_int8
fn slot_dot(at: u32, unit: u32) -> f32 {
    let x = column_at(unit);
    return int8_half(at, unit, 0u, x.groups[0], x.groups[1]) * x.scales.x
        + int8_half(at, unit, 4u, x.groups[2], x.groups[3]) * x.scales.y;
}
