// loss = sum of the rows' losses     one workgroup
//#use reduce

struct Params {
    rows: u32,
    width: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> statistics: array<f32>;
@group(0) @binding(3) var<storage, read_write> loss: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    var part = 0.0;
    for (var row = lane.index; row < p.rows; row += WG) {
        part += statistics[row * 3u + 2u];
    }
    let sum = wg_sum(part, lane);
    if lane.index == 0u {
        loss[0] = sum;
    }
}
