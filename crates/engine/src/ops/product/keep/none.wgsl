fn keep_x(first_turn: u32, lane: Lane) {}
