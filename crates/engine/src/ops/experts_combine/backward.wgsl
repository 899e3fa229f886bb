// dz[t, j, :] = w[t, j] * dy[t, :] and dw[t, j] = sum over i of z[t, j, i] * dy[t, i]     one workgroup per slot (t, j)
//#use reduce

struct Params {
    width: u32,
    chosen: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> z: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> dz: array<f32>;
@group(0) @binding(6) var<storage, read_write> dw: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let slot = grid_index(group);
    if slot >= p.count {
        return;
    }
    let weight = w[slot];
    let row = slot / p.chosen * p.width;
    var sum = 0.0;
    for (var i = lane.index; i < p.width; i += WG) {
        let slope = dy[row + i];
        dz[slot * p.width + i] = weight * slope;
        sum += z[slot * p.width + i] * slope;
    }
    sum = wg_sum(sum, lane);
    if lane.index == 0u {
        dw[slot] = sum;
    }
}
