// Reductions over a workgroup: within subgroups of any size, then through workgroup memory. Every lane gets the result.
override WG: u32 = 256u;

struct Lane {
    index: u32,
    in_subgroup: u32,
    subgroup: u32,
    subgroups: u32,
}

// A subgroup has at least four lanes.
var<workgroup> sh_reduce: array<f32, WG / 4u>;

fn wg_sum(value: f32, lane: Lane) -> f32 {
    let part = subgroupAdd(value);
    if lane.in_subgroup == 0u {
        sh_reduce[lane.subgroup] = part;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < lane.subgroups; i++) {
        sum += sh_reduce[i];
    }
    // The next reduction overwrites this memory.
    workgroupBarrier();
    return sum;
}

var<workgroup> sh_reduce_pairs: array<vec2<f32>, WG / 4u>;

// Reduces two sums at once; may be called once per kernel.
fn wg_sum_pair(value: vec2<f32>, lane: Lane) -> vec2<f32> {
    let part = subgroupAdd(value);
    if lane.in_subgroup == 0u {
        sh_reduce_pairs[lane.subgroup] = part;
    }
    workgroupBarrier();
    var sum = vec2(0.0);
    for (var i = 0u; i < lane.subgroups; i++) {
        sum += sh_reduce_pairs[i];
    }
    return sum;
}

fn wg_max(value: f32, lane: Lane) -> f32 {
    let part = subgroupMax(value);
    if lane.in_subgroup == 0u {
        sh_reduce[lane.subgroup] = part;
    }
    workgroupBarrier();
    var largest = sh_reduce[0];
    for (var i = 1u; i < lane.subgroups; i++) {
        largest = max(largest, sh_reduce[i]);
    }
    workgroupBarrier();
    return largest;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_invocation_id) in_subgroup: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
) {
    kernel(group, Lane(index, in_subgroup, subgroup, subgroups));
}
