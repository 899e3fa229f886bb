// x with k as the outer dimension (k-major), padded with zeros: y[k, c] = x[c, k]     one workgroup per block of 32 × 32
struct Params {
    columns: u32,
    width: u32,
    // Padded sizes of the result.
    depth: u32,
    stride: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// One element more per row, so that the elements of a column do not hit the same memory bank.
var<workgroup> sh: array<array<f32, 33>, 32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let across = p.stride / 32u;
    let block = grid_index(group);
    let column = block % across * 32u;
    let k = block / across * 32u;
    let lane = index % 32u;
    for (var i = index / 32u; i < 32u; i += 8u) {
        var value = 0.0;
        if column + i < p.columns && k + lane < p.width {
            value = x[(column + i) * p.width + k + lane];
        }
        sh[i][lane] = value;
    }
    workgroupBarrier();
    for (var i = index / 32u; i < 32u; i += 8u) {
        if k + i < p.depth {
            y[(k + i) * p.stride + column + lane] = sh[lane][i];
        }
    }
}
