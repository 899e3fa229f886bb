// The tokens of a run stand behind those of earlier ones.
fn first_position() -> u32 {
    return run.position;
}

fn live_tokens() -> u32 {
    return run.count;
}

fn keep_row(place: u32, largest: f32, sum: f32) {
}
