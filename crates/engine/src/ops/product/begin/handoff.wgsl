// x lies in memory as the products want it.
fn begin(first_turn: u32, lane: Lane) {
    make_low(lane);
}
