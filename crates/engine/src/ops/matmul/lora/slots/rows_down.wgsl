// z[t, r] = sum over k of A[slot of t, r, k] * x[t, k]     one workgroup per row of a slab of A and token; rows of other slots than the token's are skipped
//#use lora_weight
// Before the reduction, whose array has a computed size: naga rejects overrides that follow one.
//#use slot_row
//#use reduce
struct Params {
    width: u32,
    rank: u32,
    // vec4s of a row of A in memory.
    stride: u32,
    // The first row of the slab.
    first: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> lora_a: array<LoraVec4>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
// Before z of a token, in a vec4, is its adapter.
@group(0) @binding(4) var<storage, read_write> slot_z: array<f32>;

fn x_at(token: u32, k: u32) -> f32 {
    return select(0.0, x[token * p.width + min(k, p.width - 1u)], k < p.width);
}

fn kernel(group: vec3<u32>, lane: Lane) {
    let adapter = adapter_of(group.y);
    let start = group.y * (p.rank + 4u);
    let row = p.first + group.x;
    if row == 0u && lane.index == 0u {
        slot_z[start] = f32(adapter);
    }
    if adapter != row / p.rank + 1u {
        return;
    }
    var sum = 0.0;
    for (var i = lane.index; i < (p.width + 3u) / 4u; i += WG) {
        let k = i * 4u;
        let four = vec4(x_at(group.y, k), x_at(group.y, k + 1u), x_at(group.y, k + 2u), x_at(group.y, k + 3u));
        sum += dot(lora_vec4(lora_a[group.x * p.stride + i]), four);
    }
    sum = wg_sum(sum, lane);
    if lane.index == 0u {
        slot_z[start + 4u + row % p.rank] = sum;
    }
}
