// Teams of SPLIT × LANES lanes; LANES is a power of two and at most the subgroup size. Reductions use subgroup shuffles within LANES
// lanes, and workgroup memory between the SPLIT parts of a team.
override WG: u32 = 256u;
override LANES: u32 = 32u;
override SPLIT: u32 = 1u;
// Lanes that can reduce by shuffles, regardless of teams; divides the workgroup size.
override WIDE: u32 = LANES;
// Components that callers of team_sum4 use: one, two or four.
override SUMS: u32 = 4u;

struct Lane {
    team: u32,
    // Index of the lane in its team.
    index: u32,
    // Index of the group of LANES lanes in the workgroup, and of the lane in the group.
    part: u32,
    in_part: u32,
}

// Arrays that a kernel does not use take no memory. WG / LANES entries would suffice, but naga rejects an array sized by two overrides.
var<workgroup> sh_parts: array<f32, WG>;
var<workgroup> sh_parts4: array<vec4<f32>, WG>;

fn team_sum(value: f32, lane: Lane) -> f32 {
    var sum = part_sum(value);
    if SPLIT > 1u {
        if lane.in_part == 0u {
            sh_parts[lane.part] = sum;
        }
        workgroupBarrier();
        sum = sh_parts[lane.team * SPLIT];
        for (var i = 1u; i < SPLIT; i++) {
            sum = sum + sh_parts[lane.team * SPLIT + i];
        }
        // The next call overwrites this memory.
        workgroupBarrier();
    }
    return sum;
}

fn team_sum4(value: vec4<f32>, lane: Lane) -> vec4<f32> {
    var sums = value;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        sums = sums + exchanged(sums, step);
    }
    if SPLIT > 1u {
        if lane.in_part == 0u {
            sh_parts4[lane.part] = sums;
        }
        workgroupBarrier();
        sums = sh_parts4[lane.team * SPLIT];
        for (var i = 1u; i < SPLIT; i++) {
            sums = sums + sh_parts4[lane.team * SPLIT + i];
        }
        // The next call overwrites this memory.
        workgroupBarrier();
    }
    return sums;
}

// Unused components are zero.
fn exchanged(sums: vec4<f32>, step: u32) -> vec4<f32> {
    if SUMS == 1u {
        return vec4(subgroupShuffleXor(sums.x, step), 0.0, 0.0, 0.0);
    }
    if SUMS == 2u {
        return vec4(subgroupShuffleXor(sums.xy, step), 0.0, 0.0);
    }
    return subgroupShuffleXor(sums, step);
}

// Sum over the whole workgroup; may be called once, because there is no barrier after the result is read.
fn group_sum(value: f32, lane: Lane) -> f32 {
    let at = lane.part * LANES + lane.in_part;
    let part = sum_over(value, WIDE);
    if at % WIDE == 0u {
        sh_parts[at / WIDE] = part;
    }
    workgroupBarrier();
    var sum = sh_parts[0];
    for (var i = 1u; i < WG / WIDE; i++) {
        sum = sum + sh_parts[i];
    }
    return sum;
}

// A second sum over the whole workgroup, through other memory than group_sum; needs a barrier before the next team_sum4, which shares it.
fn group_sum_again(value: f32, lane: Lane) -> f32 {
    let at = lane.part * LANES + lane.in_part;
    let part = sum_over(value, WIDE);
    if at % WIDE == 0u {
        sh_parts4[at / WIDE].x = part;
    }
    workgroupBarrier();
    var sum = sh_parts4[0].x;
    for (var i = 1u; i < WG / WIDE; i++) {
        sum = sum + sh_parts4[i].x;
    }
    return sum;
}

// Sum over LANES lanes.
fn part_sum(value: f32) -> f32 {
    return sum_over(value, LANES);
}

fn sum_over(value: f32, lanes: u32) -> f32 {
    var sum = value;
    for (var step = lanes / 2u; step > 0u; step /= 2u) {
        sum = sum + subgroupShuffleXor(sum, step);
    }
    return sum;
}

// Sixteen sums at once, for teams inside a subgroup. Unrolled: in a loop, each step would wait for the previous one.
fn team_sum16(value: mat4x4<f32>, lane: Lane) -> mat4x4<f32> {
    var sums = value;
    if LANES > 16u {
        sums = sums + shuffled16(sums, 16u);
    }
    if LANES > 8u {
        sums = sums + shuffled16(sums, 8u);
    }
    if LANES > 4u {
        sums = sums + shuffled16(sums, 4u);
    }
    sums = sums + shuffled16(sums, 2u);
    return sums + shuffled16(sums, 1u);
}

fn shuffled16(sums: mat4x4<f32>, step: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        subgroupShuffleXor(sums[0], step),
        subgroupShuffleXor(sums[1], step),
        subgroupShuffleXor(sums[2], step),
        subgroupShuffleXor(sums[3], step),
    );
}

fn team_max(value: f32, lane: Lane) -> f32 {
    var most = value;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        most = max(most, subgroupShuffleXor(most, step));
    }
    if SPLIT > 1u {
        if lane.in_part == 0u {
            sh_parts[lane.part] = most;
        }
        workgroupBarrier();
        most = sh_parts[lane.team * SPLIT];
        for (var i = 1u; i < SPLIT; i++) {
            most = max(most, sh_parts[lane.team * SPLIT + i]);
        }
        // The next call overwrites this memory.
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
    // Indexed by subgroup: how invocations map to subgroups is up to the device.
    let index = subgroup * size + in_subgroup;
    let team = LANES * SPLIT;
    kernel(group, Lane(index / team, index % team, index / LANES, index % LANES));
}
