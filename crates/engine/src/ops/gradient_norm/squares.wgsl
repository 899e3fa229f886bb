// parts[g] = sum of x[i]^2 over a strided share of x     one workgroup per part
//#use reduce

struct Params {
    len: u32,
    groups: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> parts: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    var part = 0.0;
    for (var i = group.x * WG + lane.index; i < p.len; i += p.groups * WG) {
        part += x[i] * x[i];
    }
    let sum = wg_sum(part, lane);
    if lane.index == 0u {
        parts[group.x] = sum;
    }
}
