// x is in memory as int8 hi/lo pairs: its producer quantised it.
fn prologue(first_turn: u32, lane: Lane) {
    compute_lora_down(lane);
}
