fn next_norm(squares: f32, lane: Lane) {}
