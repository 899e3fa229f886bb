// Eight of 32 lanes share rows, and what they find goes from lane to lane. Of eight neighbours two share rows and four share keys, so that
// they read the fewest different numbers at a time. Subgroups have 32 lanes or more.
fn row_lane_of(lane: u32) -> u32 {
    return lane / 32u * 4u + lane / 2u % 4u;
}

fn key_lane_of(lane: u32) -> u32 {
    return lane / 8u % 4u * 2u + lane % 2u;
}

fn most_of_eight(mine: vec4<f32>, lane: u32) -> vec4<f32> {
    var most = max(mine, subgroupShuffleXor(mine, 16u));
    most = max(most, subgroupShuffleXor(most, 8u));
    return max(most, subgroupShuffleXor(most, 1u));
}

fn sum_of_eight(mine: vec4<f32>, lane: u32) -> vec4<f32> {
    var sum = mine + subgroupShuffleXor(mine, 16u);
    sum += subgroupShuffleXor(sum, 8u);
    return sum + subgroupShuffleXor(sum, 1u);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(subgroup_invocation_id) in_subgroup: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_size) size: u32,
) {
    // Numbered by subgroup: how invocations are dealt out to subgroups is the device's choice. The remainder tells compilers how many lanes there are.
    kernel(group, (subgroup * size + in_subgroup) % 64u);
}
