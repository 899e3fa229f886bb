// y[lane] = sum of every LANES-th vec4 of x     neighbouring lanes read neighbouring vec4s
const LANES: u32 = 4096u * 256u;

struct Params {
    vec4s: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let lane = grid_index(group) * 256u + index;
    var sum = vec4(0.0);
    for (var i = lane; i < p.vec4s; i += LANES) {
        sum += x[i];
    }
    y[lane] = sum.x + sum.y + sum.z + sum.w;
}
