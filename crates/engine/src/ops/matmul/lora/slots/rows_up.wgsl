// y[t, r] = base[t, r] + sum over i of B[slot of t, r, i] * z[t, i]     one lane per output. The first slab of B writes all outputs, the others those of their rows.
//#use slot_sum
struct Params {
    outputs: u32,
    rows: u32,
    // The slab's rows.
    first: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> base: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
var<private> token: u32;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = grid_index(group) * 64u + lane;
    if i >= p.outputs {
        return;
    }
    token = i / p.rows;
    let adapter = slot_adapter();
    let row = (max(adapter, 1u) - 1u) * p.rows + i % p.rows;
    if adapter > 0u && row >= p.first && row < p.first + p.count {
        y[i] = base[i] + slot_sum(row - p.first);
    } else if p.first == 0u {
        y[i] = base[i];
    }
}
