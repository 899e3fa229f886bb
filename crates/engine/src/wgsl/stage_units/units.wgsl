// Weights are staged in units, one per lane.
fn loads_weights(lane: u32) -> bool {
    return ROWS * SLICE == WG || lane < ROWS * SLICE;
}

fn weights_start(tile: Tile, lane: u32) -> u32 {
    return weight_start(tile, lane);
}

fn load_slice(start: u32, unit: u32, lane: u32) -> LoadedWeights {
    return load_packed_unit(weight_unit(start, unit, lane));
}

fn stage_weights(weights: LoadedWeights, lane: u32) {
    stage_unit(weights, weight_place(lane));
}
