// Nothing is added.
//#use low_own
fn make_low(lane: Lane) {}

fn low_beside(row: u32, lane: Lane) {}
