// x is read from memory by every team.
//#use columns
fn begin(group: vec3<u32>, lane: Lane) {
    make_low(lane);
}

fn x_quad(i: u32) -> vec4<f32> {
    return x4(0u, i * 4u);
}

fn x_column(i: u32) -> u32 {
    return i * 4u;
}

fn column_at(unit: u32) -> Column {
    return column_of(x_unit(0u, unit));
}

fn unit_sum(unit: u32, column: Column) -> f32 {
    return unit_times(unit_at(unit), column);
}
