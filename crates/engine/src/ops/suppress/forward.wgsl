// y[r, i] = -inf if i is in ids, else x[r, i]     one lane per logit; logits are copied as bits
struct Params {
    len: u32,
    width: u32,
    ids: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> ids: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i < p.len {
        var bits = x[i];
        for (var n = 0u; n < p.ids; n++) {
            if ids[n] == i % p.width {
                bits = 0xff800000u;
            }
        }
        y[i] = bits;
    }
}
