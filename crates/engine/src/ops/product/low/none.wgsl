// Nothing is added.
//#use low_asked
fn make_low(lane: Lane) {}

fn low_sums(asked: LowAsked, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    return vec4(0.0);
}

fn low_beside(row: u32, lane: Lane) {}
