// Teams of LANES lanes inside a subgroup of at least that width; sums by exchange, without memory or barriers.
override WG: u32 = 256u;
override LANES: u32 = 32u;

struct Lane {
    team: u32,
    index: u32,
}

fn team_sum4(values: vec4<f32>, lane: Lane) -> vec4<f32> {
    var sums = values;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        sums += subgroupShuffleXor(sums, step);
    }
    return sums;
}

fn team_sum(value: f32, lane: Lane) -> f32 {
    var sum = value;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        sum += subgroupShuffleXor(sum, step);
    }
    return sum;
}

fn team_max(value: f32, lane: Lane) -> f32 {
    var most = value;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        most = max(most, subgroupShuffleXor(most, step));
    }
    return most;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(subgroup_invocation_id) in_subgroup: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_size) size: u32,
) {
    // Numbered by subgroup: how invocations are dealt out to subgroups is the device's choice.
    let index = subgroup * size + in_subgroup;
    kernel(group, Lane(index / LANES, index % LANES));
}
