// x is in global memory as int8 hi/lo pairs, quantised by its producer.
fn prologue(first_turn: u32, lane: Lane) {
    compute_lora_down(lane);
}
