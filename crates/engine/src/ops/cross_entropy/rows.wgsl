// statistics[i] = max(l_i), sum of exp(l_i - max), loss of row i     one workgroup per row
//#use reduce

struct Params {
    rows: u32,
    width: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<u32>;
@group(0) @binding(4) var<storage, read_write> statistics: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.width;
    var most = -3.0e38;
    for (var j = lane.index; j < p.width; j += WG) {
        most = max(most, logits[start + j]);
    }
    let largest = wg_max(most, lane);
    var part = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        part += exp(logits[start + j] - largest);
    }
    let sum = wg_sum(part, lane);
    if lane.index == 0u {
        let label = targets[row];
        var loss = 0.0;
        if row < run.count && label < p.width {
            loss = largest + log(sum) - logits[start + label];
        }
        statistics[row * 3u] = largest;
        statistics[row * 3u + 1u] = sum;
        statistics[row * 3u + 2u] = loss;
    }
}
