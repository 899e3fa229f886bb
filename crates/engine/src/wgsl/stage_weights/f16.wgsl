// F16 weights: adjacent lanes load adjacent groups of four of a row, as for x. Only where the weight's rows are rows of the tile.
struct Starts {
    first: vec4<u32>,
    second: vec4<u32>,
}

struct LoadedWeights {
    w0: vec4<f16>,
    w1: vec4<f16>,
    w2: vec4<f16>,
    w3: vec4<f16>,
    w4: vec4<f16>,
    w5: vec4<f16>,
    w6: vec4<f16>,
    w7: vec4<f16>,
}

// The stride in rows between a lane's groups, and the number of groups that it loads: up to eight.
const ROW_STEP: u32 = WG / GROUPS;
const ROW_GROUPS: u32 = ROWS / ROW_STEP;

fn loads_weights(lane: u32) -> bool {
    return true;
}

fn weights_start(tile: Tile, lane: u32) -> Starts {
    let row = lane / GROUPS;
    let first = vec4(row_start(tile, row, 0u), row_start(tile, row, 1u), row_start(tile, row, 2u), row_start(tile, row, 3u));
    let second = vec4(row_start(tile, row, 4u), row_start(tile, row, 5u), row_start(tile, row, 6u), row_start(tile, row, 7u));
    return Starts(first, second);
}

fn row_start(tile: Tile, row: u32, i: u32) -> u32 {
    return row_units_at(tile, min(row + i * ROW_STEP, ROWS - 1u)) * 8u;
}

fn load_slice(start: Starts, unit: u32, lane: u32) -> LoadedWeights {
    // Elements past the end of a row do not matter because x is zero there.
    let at = min(unit + lane % GROUPS / 8u, p.row_units - 1u) * 8u + lane % 8u;
    let a = start.first + vec4(at);
    let b = start.second + vec4(at);
    return LoadedWeights(
        group(a.x, 0u), group(a.y, 1u), group(a.z, 2u), group(a.w, 3u), group(b.x, 4u), group(b.y, 5u), group(b.z, 6u), group(b.w, 7u),
    );
}

fn group(at: u32, i: u32) -> vec4<f16> {
    if i >= ROW_GROUPS {
        return vec4<f16>();
    }
    return weight_group(at);
}

fn stage_weights(w: LoadedWeights, lane: u32) {
    stage_weight_group(w.w0, 0u, lane);
    stage_weight_group(w.w1, 1u, lane);
    stage_weight_group(w.w2, 2u, lane);
    stage_weight_group(w.w3, 3u, lane);
    stage_weight_group(w.w4, 4u, lane);
    stage_weight_group(w.w5, 5u, lane);
    stage_weight_group(w.w6, 6u, lane);
    stage_weight_group(w.w7, 7u, lane);
}

fn stage_weight_group(group: vec4<f16>, i: u32, lane: u32) {
    if i < ROW_GROUPS {
        sh_w[(lane / GROUPS + i * ROW_STEP) * STRIDE + lane % GROUPS] = group;
    }
}
