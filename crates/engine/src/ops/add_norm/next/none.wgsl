fn next(start: u32, squares: f32, lane: Lane) {}
