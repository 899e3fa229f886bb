// Weights that are brought in units: each lane one, as they lie.
fn brings(lane: u32) -> bool {
    return ROWS * SLICE == WG || lane < ROWS * SLICE;
}

fn weights_start(tile: Tile, lane: u32) -> u32 {
    return weight_start(tile, lane);
}

fn bring(start: u32, unit: u32, lane: u32) -> Brought {
    return bring_unit(weight_unit(start, unit, lane));
}

fn put_weights(weights: Brought, lane: u32) {
    put_unit(weights, weight_place(lane));
}
