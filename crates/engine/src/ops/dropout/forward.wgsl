// y[i] = x[i] * factor if the random bits of i are not below the limit, else 0     one lane per element
struct Params {
    len: u32,
    salt: u32,
    limit: u32,
    factor: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i >= p.len {
        return;
    }
    let bits = mixed(run.seed ^ mixed(p.salt ^ mixed(i)));
    y[i] = select(0.0, x[i] * p.factor, bits >= p.limit);
}

fn mixed(number: u32) -> u32 {
    var x = number + 0x9e3779b9u;
    x = (x ^ (x >> 16u)) * 0x85ebca6bu;
    x = (x ^ (x >> 13u)) * 0xc2b2ae35u;
    return x ^ (x >> 16u);
}
