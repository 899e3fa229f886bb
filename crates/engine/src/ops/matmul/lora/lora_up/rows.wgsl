// A lane multiplies vec4s of up to four rows of B, as part of the team's sum. The first are loaded while the prologue computes x, those of the
// next turn during the multiplications of this one.
struct LoraLoaded {
    x: LoraVec4,
    y: LoraVec4,
    z: LoraVec4,
    w: LoraVec4,
}

fn lora_at(rows: vec4<u32>, i: u32) -> LoraLoaded {
    let at = (rows + vec4(p.first_row)) * p.lora_stride + vec4(i);
    var loaded: LoraLoaded;
    loaded.x = lora_b[at.x];
    if ROWS > 1u {
        loaded.y = lora_b[at.y];
    }
    if ROWS > 2u {
        loaded.z = lora_b[at.z];
        loaded.w = lora_b[at.w];
    }
    return loaded;
}

// Lanes past the rank read its last vec4.
fn prefetch_lora(turn: u32, lane: Lane) -> LoraLoaded {
    return lora_at(rows_of(turn, lane), min(lane.index, p.lora_vec4s - 1u));
}

fn prefetch_lora_next(loaded: LoraLoaded, turn: u32, lane: Lane) -> LoraLoaded {
    if turn + p.groups >= p.turns {
        return loaded;
    }
    return prefetch_lora(turn + p.groups, lane);
}

fn lora_times(loaded: LoraLoaded, i: u32) -> vec4<f32> {
    let z = lora_z(i);
    var sums = vec4(dot(lora_vec4(loaded.x), z), 0.0, 0.0, 0.0);
    if ROWS > 1u {
        sums.y = dot(lora_vec4(loaded.y), z);
    }
    if ROWS > 2u {
        sums.z = dot(lora_vec4(loaded.z), z);
        sums.w = dot(lora_vec4(loaded.w), z);
    }
    return sums;
}

fn lora_sums(loaded: LoraLoaded, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    var sums = vec4(0.0);
    if lane.index < p.lora_vec4s {
        sums = lora_times(loaded, lane.index);
    }
    for (var i = lane.index + LANES * SPLIT; i < p.lora_vec4s; i += LANES * SPLIT) {
        sums += lora_times(lora_at(rows, i), i);
    }
    return sums;
}

fn lora_down_rows(row: u32, lane: Lane) {}
