// o[i, h] = sum over distances d of softmax(cap * tanh(q[i, h] . (k[i - d, h] + r[d, h]) / cap)) * v[i - d, h]
// One workgroup per head and row: one lane per distance computes a score, then one lane per column of the head sums values.
//#use gelu

struct Params {
    heads: u32,
    width: u32,
    distances: u32,
    cap: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> q: array<f32>;
@group(0) @binding(3) var<storage, read> k: array<f32>;
@group(0) @binding(4) var<storage, read> v: array<f32>;
@group(0) @binding(5) var<storage, read> r: array<f32>;
@group(0) @binding(6) var<storage, read_write> o: array<f32>;

const WG: u32 = 64u;

var<workgroup> sh_score: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) id: u32) {
    let head = group.x * p.width;
    let row = p.heads * p.width;
    let query = group.y * row + head;
    let visible = min(p.distances, group.y + 1u);
    if id < visible {
        let key = query - id * row;
        let distance = id * row + head;
        var sum = 0.0;
        for (var j = 0u; j < p.width; j++) {
            sum += q[query + j] * (k[key + j] + r[distance + j]);
        }
        sh_score[id] = p.cap * safe_tanh(sum / p.cap);
    }
    workgroupBarrier();
    var largest = sh_score[0];
    for (var d = 1u; d < visible; d++) {
        largest = max(largest, sh_score[d]);
    }
    var weights = 0.0;
    for (var d = 0u; d < visible; d++) {
        weights += exp(sh_score[d] - largest);
    }
    for (var j = id; j < p.width; j += WG) {
        var sum = 0.0;
        for (var d = 0u; d < visible; d++) {
            sum += exp(sh_score[d] - largest) * v[query - d * row + j];
        }
        o[query + j] = sum / weights;
    }
}
