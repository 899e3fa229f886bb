// Teams of SPLIT times LANES lanes, LANES a power of two and no more than a subgroup has. Inside LANES, sums by exchange; the parts of a
// team meet in workgroup memory.
override WG: u32 = 256u;
override LANES: u32 = 32u;
override SPLIT: u32 = 1u;

struct Lane {
    team: u32,
    // Among the lanes of the team.
    index: u32,
    // Among the workgroup's groups of LANES, and inside its own.
    part: u32,
    in_part: u32,
}

// WG / LANES would do, but naga stumbles over an array sized by two overrides.
var<workgroup> sh_parts: array<vec4<f32>, WG>;

fn team_sum4(values: vec4<f32>, lane: Lane) -> vec4<f32> {
    var sums = values;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        sums += subgroupShuffleXor(sums, step);
    }
    if SPLIT > 1u {
        if lane.in_part == 0u {
            sh_parts[lane.part] = sums;
        }
        workgroupBarrier();
        sums = sh_parts[lane.team * SPLIT];
        for (var i = 1u; i < SPLIT; i++) {
            sums += sh_parts[lane.team * SPLIT + i];
        }
        // The next sum writes this memory again.
        workgroupBarrier();
    }
    return sums;
}

fn team_sum(value: f32, lane: Lane) -> f32 {
    return team_sum4(vec4(value, 0.0, 0.0, 0.0), lane).x;
}

fn team_max(value: f32, lane: Lane) -> f32 {
    var most = value;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        most = max(most, subgroupShuffleXor(most, step));
    }
    if SPLIT > 1u {
        if lane.in_part == 0u {
            sh_parts[lane.part].x = most;
        }
        workgroupBarrier();
        for (var i = 0u; i < SPLIT; i++) {
            most = max(most, sh_parts[lane.team * SPLIT + i].x);
        }
        workgroupBarrier();
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
    let team = LANES * SPLIT;
    kernel(group, Lane(index / team, index % team, index / LANES, index % LANES));
}
