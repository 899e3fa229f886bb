// k and v as halves     one lane per group of four of both
enable f16;

struct Params {
    groups: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> k_half: array<vec4<f16>>;
@group(0) @binding(5) var<storage, read_write> v_half: array<vec4<f16>>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let at = grid_index(group) * 256u + index;
    if at < p.groups {
        k_half[at] = halves(k[at]);
        v_half[at] = halves(v[at]);
    }
}

fn halves(numbers: vec4<f32>) -> vec4<f16> {
    return vec4<f16>(clamp(numbers, vec4(-65504.0), vec4(65504.0)));
}
