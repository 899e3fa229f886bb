// dl[i, j] = (exp(l[i, j] - max) / sum - [j is the target]) * dloss, 0 in rows without a target     one lane per logit
struct Params {
    rows: u32,
    width: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<u32>;
@group(0) @binding(4) var<storage, read> dloss: array<f32>;
@group(0) @binding(5) var<storage, read> statistics: array<f32>;
@group(0) @binding(6) var<storage, read_write> dlogits: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    let row = i / p.width;
    if row >= p.rows {
        return;
    }
    let label = targets[row];
    if row >= run.count || label >= p.width {
        dlogits[i] = 0.0;
        return;
    }
    let share = exp(logits[i] - statistics[row * 3u]) / statistics[row * 3u + 1u];
    dlogits[i] = (share - select(0.0, 1.0, i % p.width == label)) * dloss[0];
}
