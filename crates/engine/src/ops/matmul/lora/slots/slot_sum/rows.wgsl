// sum over i of B[slot, row, i] * z[i], one vec4 after the other by one lane: zeros that pad the rank change no bit, wherever they are. Before z of a token is
// its adapter: 0 for none, otherwise its slot plus one.
//#use lora_weight
// vec4s of the rank, and of a row of B in memory.
override SLOT_VEC4S: u32 = 4u;
override SLOT_STRIDE: u32 = 8u;
@group(0) @binding(auto) var<storage, read> slot_z: array<vec4<f32>>;
@group(0) @binding(auto) var<storage, read> slot_b: array<LoraVec4>;

fn slot_adapter() -> u32 {
    return u32(slot_z[token * (SLOT_VEC4S + 1u)].x);
}

fn slot_sum(row: u32) -> f32 {
    let z = token * (SLOT_VEC4S + 1u) + 1u;
    var sum = 0.0;
    for (var i = 0u; i < SLOT_VEC4S; i++) {
        sum += dot(lora_vec4(slot_b[row * SLOT_STRIDE + i]), slot_z[z + i]);
    }
    return sum;
}
