// y[r] += sum over i of B[r, i] * z[i], where attention stored z = A x as split-KV partials, like x. B is transposed. So that the reader of y
// adds nothing, zeros are stored in place of z.
//#use lora_b
// The rank, a multiple of four; its vec4s of all heads, and their offset.
override UP_RANK: u32 = 16u;
override UP_PARTIALS: u32 = 32u;
override UP_PARTIALS_AT: u32 = 0u;
// vec4s of a row of B in memory.
override UP_STRIDE: u32 = 384u;

var<workgroup> sh_up: array<vec4<f32>, UP_PARTIALS>;

struct LoraLoaded {
    x: UpVec4,
    y: UpVec4,
    z: UpVec4,
    w: UpVec4,
}

// A vec4 of z of one head, combined over KV splits.
fn up_partial(i: u32) -> vec4<f32> {
    return combined_of(i / (UP_RANK / 4u), UP_PARTIALS_AT, UP_RANK / 4u, i % (UP_RANK / 4u));
}

// Issues the loads before x is staged.
fn prefetch_up(lane: Lane) -> vec4<f32> {
    var part = vec4(0.0);
    if local_index(lane) < UP_PARTIALS {
        part = up_partial(local_index(lane));
    }
    return part;
}

// Stores z to workgroup memory; a barrier follows.
fn stage_up(first: vec4<f32>, first_turn: u32, lane: Lane) {
    if local_index(lane) < UP_PARTIALS {
        sh_up[local_index(lane)] = first;
    }
    for (var i = local_index(lane) + WG; i < UP_PARTIALS; i += WG) {
        sh_up[i] = up_partial(i);
    }
    for (var i = local_index(lane); i < UP_RANK; i += WG) {
        if first_turn == 0u {
            y[p.y_width + i] = 0.0;
        }
    }
}

fn up_z(i: u32) -> f32 {
    var sum = vec4(0.0);
    for (var at = i / 4u; at < UP_PARTIALS; at += UP_RANK / 4u) {
        sum += sh_up[at];
    }
    return sum[i % 4u];
}

fn lora_at(rows: vec4<u32>, i: u32) -> LoraLoaded {
    let at = vec4(i * UP_STRIDE) + rows / 4u;
    var loaded: LoraLoaded;
    loaded.x = up_b[at.x];
    if ROWS > 1u {
        loaded.y = up_b[at.y];
    }
    if ROWS > 2u {
        loaded.z = up_b[at.z];
        loaded.w = up_b[at.w];
    }
    return loaded;
}

// Lanes past the rank read its last row.
fn prefetch_lora(turn: u32, lane: Lane) -> LoraLoaded {
    return lora_at(rows_of(turn, lane), min(lane.index, UP_RANK - 1u));
}

fn prefetch_lora_next(loaded: LoraLoaded, turn: u32, lane: Lane) -> LoraLoaded {
    if turn + p.groups >= p.turns {
        return loaded;
    }
    return prefetch_lora(turn + p.groups, lane);
}

fn lora_times(loaded: LoraLoaded, rows: vec4<u32>, i: u32) -> vec4<f32> {
    let z = up_z(i);
    var sums = vec4(up_vec4(loaded.x)[rows.x % 4u] * z, 0.0, 0.0, 0.0);
    if ROWS > 1u {
        sums.y = up_vec4(loaded.y)[rows.y % 4u] * z;
    }
    if ROWS > 2u {
        sums.z = up_vec4(loaded.z)[rows.z % 4u] * z;
        sums.w = up_vec4(loaded.w)[rows.w % 4u] * z;
    }
    return sums;
}

fn lora_sums(loaded: LoraLoaded, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    var sums = vec4(0.0);
    if lane.index < UP_RANK {
        sums = lora_times(loaded, rows, lane.index);
    }
    for (var i = lane.index + LANES * SPLIT; i < UP_RANK; i += LANES * SPLIT) {
        sums += lora_times(lora_at(rows, i), rows, i);
    }
    return sums;
}

// Rows of A that attention has multiplied already.
fn up_rows() -> u32 {
    return UP_RANK;
}
