fn residual_down(row: u32, lane: Lane) {}
