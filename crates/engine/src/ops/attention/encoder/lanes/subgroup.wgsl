// Eight lanes share rows and reduce by subgroup shuffles: adjacent lanes if subgroups have eight lanes or more. With SPREAD, for subgroups of 32,
// they are spread over the subgroup: of eight adjacent lanes, two share rows and four share keys, which minimises the distinct addresses
// read at a time.
override SPREAD: bool = false;

fn row_lane_of(lane: u32) -> u32 {
    return select(lane / 8u, lane / 32u * 4u + lane / 2u % 4u, SPREAD);
}

fn key_lane_of(lane: u32) -> u32 {
    return select(lane % 8u, lane / 8u % 4u * 2u + lane % 2u, SPREAD);
}

// Lane distances of the first two shuffles; the last one is between adjacent lanes.
fn outer_stride() -> u32 {
    return select(4u, 16u, SPREAD);
}

fn inner_stride() -> u32 {
    return select(2u, 8u, SPREAD);
}

fn max_of_eight(mine: vec4<f32>, lane: u32) -> vec4<f32> {
    var most = max(mine, subgroupShuffleXor(mine, outer_stride()));
    most = max(most, subgroupShuffleXor(most, inner_stride()));
    return max(most, subgroupShuffleXor(most, 1u));
}

fn sum_of_eight(mine: vec4<f32>, lane: u32) -> vec4<f32> {
    var sum = mine + subgroupShuffleXor(mine, outer_stride());
    sum += subgroupShuffleXor(sum, inner_stride());
    return sum + subgroupShuffleXor(sum, 1u);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(subgroup_invocation_id) in_subgroup: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_size) size: u32,
) {
    // Indexed by subgroup: how invocations map to subgroups is up to the device. The remainder tells compilers the range.
    kernel(group, (subgroup * size + in_subgroup) % 64u);
}
