// ids[i] = given[i], or latest[slot] if given[i] names a slot     one lane per row
struct Params {
    rows: u32,
    slots: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> given: array<u32>;
@group(0) @binding(3) var<storage, read> latest: array<u32>;
@group(0) @binding(4) var<storage, read_write> ids: array<u32>;

const ON_DEVICE: u32 = 0x80000000u;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group.x * 64u + lane;
    if i < p.rows {
        let slot = min(given[i] & ~ON_DEVICE, p.slots - 1u);
        ids[i] = select(given[i], latest[slot], (given[i] & ON_DEVICE) != 0u);
    }
}
