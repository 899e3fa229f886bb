// y = total + sum over g of parts[g]     one workgroup
//#use reduce

struct Params {
    len: u32,
    groups: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> total: array<f32>;
@group(0) @binding(3) var<storage, read> parts: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    var part = 0.0;
    for (var i = lane.index; i < p.groups; i += WG) {
        part += parts[i];
    }
    let sum = wg_sum(part, lane);
    if lane.index == 0u {
        y[0] = total[0] + sum;
    }
}
