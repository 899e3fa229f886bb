fn stream_beside(row: u32, lane: Lane) {}
