// x as floats: a piece is a unit.
fn slot_dot(at: u32, unit: u32) -> f32 {
    let x = column_at(unit).x;
    return dot(slot_vec4(at, unit, 0u), x[0]) + dot(slot_vec4(at, unit, 1u), x[1])
        + dot(slot_vec4(at, unit, 2u), x[2]) + dot(slot_vec4(at, unit, 3u), x[3])
        + dot(slot_vec4(at, unit, 4u), x[4]) + dot(slot_vec4(at, unit, 5u), x[5])
        + dot(slot_vec4(at, unit, 6u), x[6]) + dot(slot_vec4(at, unit, 7u), x[7]);
}
