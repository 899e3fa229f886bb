// z[t, r] = sum over k of A[slot of t, r, k] * x[t, k]     a team per row of A; x as matmul/gemv reads it, after the same prologue
//#use params
//#use weights
//#use quant
//#use unit
//#use team
//#use prologue
//#use activation
//#use lora
//#use lora_weight
//#use slot_x
//#use slot_row
//#use slot_extra
// The rank, and vec4s of a row of A in memory.
override SLOT_RANK: u32 = 16u;
override SLOT_STRIDE: u32 = 8u;
// Before z of a token, in a vec4, is its adapter.
@group(0) @binding(4) var<storage, read_write> slot_z: array<f32>;
@group(0) @binding(auto) var<storage, read> slot_a: array<LoraVec4>;

fn slot_vec4(at: u32, unit: u32, group: u32) -> vec4<f32> {
    return lora_vec4(slot_a[at + unit_column(unit, group) / 4u]);
}

fn kernel(group: vec3<u32>, lane: Lane) {
    // Rows that are padding have no adapter.
    let adapter = select(adapter_of(group.y), 0u, PADDED > 0u && group.y >= run.count);
    let start = group.y * (SLOT_RANK + 4u);
    if group.x == 0u && lane.team + lane.index == 0u {
        slot_z[start] = f32(adapter);
    }
    if adapter == 0u {
        return;
    }
    token = group.y;
    // The residual stream is written by the GEMV.
    prologue(1u, lane);
    let team = LANES * SPLIT;
    let row = group.x * (WG / team) + lane.team;
    // Teams past the last row read it and write nothing.
    let at = ((adapter - 1u) * SLOT_RANK + min(row, SLOT_RANK - 1u)) * SLOT_STRIDE;
    var sum = 0.0;
    for (var piece = lane.index; piece < p.pieces; piece += team) {
        sum += slot_dot(at, piece);
    }
    let all = team_sum4(vec4(sum, 0.0, 0.0, 0.0), lane);
    if lane.index == 0u && row < SLOT_RANK {
        slot_z[start + 4u + row] = all.x;
    }
}
