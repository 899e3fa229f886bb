// m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  theta -= rate * (m' / (sqrt(v') + eps) + decay * theta)     one lane per parameter
struct Params {
    len: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> theta: array<f32>;
@group(0) @binding(3) var<storage, read_write> m: array<f32>;
@group(0) @binding(4) var<storage, read_write> v: array<f32>;
@group(0) @binding(5) var<storage, read> gradient: array<f32>;
// Rate, beta1, beta2, eps, decay, 1 / (1 - beta1^k), 1 / (1 - beta2^k), scale of the gradient.
@group(0) @binding(6) var<storage, read> settings: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i >= p.len {
        return;
    }
    let g = gradient[i] * settings[7];
    let first = settings[1] * m[i] + (1.0 - settings[1]) * g;
    let second = settings[2] * v[i] + (1.0 - settings[2]) * g * g;
    let step = first * settings[5] / (sqrt(second * settings[6]) + settings[3]);
    m[i] = first;
    v[i] = second;
    theta[i] -= settings[0] * (step + settings[4] * theta[i]);
}
