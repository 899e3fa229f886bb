// Reductions over a workgroup through workgroup memory. Every lane gets the result.
override WG: u32 = 256u;

struct Lane {
    index: u32,
}

var<workgroup> sh_reduce: array<f32, WG>;

fn wg_sum(value: f32, lane: Lane) -> f32 {
    sh_reduce[lane.index] = value;
    workgroupBarrier();
    for (var width = WG / 2u; width > 0u; width /= 2u) {
        if lane.index < width {
            sh_reduce[lane.index] += sh_reduce[lane.index + width];
        }
        workgroupBarrier();
    }
    let sum = sh_reduce[0];
    // The next reduction overwrites this memory.
    workgroupBarrier();
    return sum;
}

// Reduces two sums at once; may be called once per kernel.
fn wg_sum_pair(value: vec2<f32>, lane: Lane) -> vec2<f32> {
    let first = wg_sum(value.x, lane);
    return vec2(first, wg_sum(value.y, lane));
}

fn wg_max(value: f32, lane: Lane) -> f32 {
    sh_reduce[lane.index] = value;
    workgroupBarrier();
    for (var width = WG / 2u; width > 0u; width /= 2u) {
        if lane.index < width {
            sh_reduce[lane.index] = max(sh_reduce[lane.index], sh_reduce[lane.index + width]);
        }
        workgroupBarrier();
    }
    let largest = sh_reduce[0];
    workgroupBarrier();
    return largest;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    kernel(group, Lane(index));
}
