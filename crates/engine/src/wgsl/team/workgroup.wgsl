// Teams of SPLIT × LANES lanes; LANES is a power of two. Reductions use workgroup memory, which works on every device.
override WG: u32 = 256u;
override LANES: u32 = 32u;
override SPLIT: u32 = 1u;

struct Lane {
    team: u32,
    // Index of the lane in its team.
    index: u32,
    // Index of the group of LANES lanes in the workgroup, and of the lane in the group.
    part: u32,
    in_part: u32,
}

// Arrays that a kernel does not use take no memory.
var<workgroup> sh_team: array<f32, WG>;
var<workgroup> sh_team4: array<vec4<f32>, WG>;

fn team_sum(value: f32, lane: Lane) -> f32 {
    let at = lane.part * LANES + lane.in_part;
    sh_team[at] = value;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane.in_part < step {
            sh_team[at] = sh_team[at] + sh_team[at + step];
        }
        workgroupBarrier();
    }
    var sum = sh_team[lane.team * SPLIT * LANES];
    for (var i = 1u; i < SPLIT; i++) {
        sum = sum + sh_team[(lane.team * SPLIT + i) * LANES];
    }
    // The next call overwrites this memory.
    workgroupBarrier();
    return sum;
}

fn team_sum4(value: vec4<f32>, lane: Lane) -> vec4<f32> {
    let at = lane.part * LANES + lane.in_part;
    sh_team4[at] = value;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane.in_part < step {
            sh_team4[at] = sh_team4[at] + sh_team4[at + step];
        }
        workgroupBarrier();
    }
    var sums = sh_team4[lane.team * SPLIT * LANES];
    for (var i = 1u; i < SPLIT; i++) {
        sums = sums + sh_team4[(lane.team * SPLIT + i) * LANES];
    }
    // The next call overwrites this memory.
    workgroupBarrier();
    return sums;
}

// Sum over the whole workgroup.
fn group_sum(value: f32, lane: Lane) -> f32 {
    let at = lane.part * LANES + lane.in_part;
    sh_team[at] = value;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane.in_part < step {
            sh_team[at] = sh_team[at] + sh_team[at + step];
        }
        workgroupBarrier();
    }
    var sum = sh_team[0];
    for (var i = 1u; i < WG / LANES; i++) {
        sum = sum + sh_team[i * LANES];
    }
    // The next call overwrites this memory.
    workgroupBarrier();
    return sum;
}

// A second sum over the whole workgroup.
fn group_sum_again(value: f32, lane: Lane) -> f32 {
    return group_sum(value, lane);
}

// Sixteen sums at once.
fn team_sum16(value: mat4x4<f32>, lane: Lane) -> mat4x4<f32> {
    let first = team_sum4(value[0], lane);
    let second = team_sum4(value[1], lane);
    let third = team_sum4(value[2], lane);
    return mat4x4<f32>(first, second, third, team_sum4(value[3], lane));
}

fn team_max(value: f32, lane: Lane) -> f32 {
    let at = lane.part * LANES + lane.in_part;
    sh_team[at] = value;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane.in_part < step {
            sh_team[at] = max(sh_team[at], sh_team[at + step]);
        }
        workgroupBarrier();
    }
    var most = sh_team[lane.team * SPLIT * LANES];
    for (var i = 1u; i < SPLIT; i++) {
        most = max(most, sh_team[(lane.team * SPLIT + i) * LANES]);
    }
    // The next call overwrites this memory.
    workgroupBarrier();
    return most;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let team = LANES * SPLIT;
    kernel(group, Lane(index / team, index % team, index / LANES, index % LANES));
}
