// delta[row] = sum over the head of dy * y     one workgroup per token and head
override WIDTH: u32 = 256u;
//#use reduce

struct Params {
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> delta: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let start = grid_index(group) * WIDTH;
    if grid_index(group) >= p.rows {
        return;
    }
    var products = 0.0;
    for (var j = lane.index; j < WIDTH; j += WG) {
        products += y[start + j] * dy[start + j];
    }
    let sum = wg_sum(products, lane);
    if lane.index == 0u {
        delta[start / WIDTH] = sum;
    }
}
