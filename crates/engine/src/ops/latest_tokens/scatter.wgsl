// latest[slot of row i] = tokens[i]     one lane per live row
struct Params {
    rows: u32,
    slots: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read_write> latest: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group.x * 64u + lane;
    if i < min(p.rows, run.count) {
        latest[min(token_slot(i), p.slots - 1u)] = tokens[i];
    }
}
