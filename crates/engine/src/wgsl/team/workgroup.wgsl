// Teams of SPLIT times LANES lanes, LANES a power of two; sums through workgroup memory, which works everywhere.
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

var<workgroup> sh_team: array<vec4<f32>, WG>;

fn team_sum4(values: vec4<f32>, lane: Lane) -> vec4<f32> {
    let at = lane.part * LANES + lane.in_part;
    sh_team[at] = values;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane.in_part < step {
            sh_team[at] += sh_team[at + step];
        }
        workgroupBarrier();
    }
    var sums = sh_team[lane.team * SPLIT * LANES];
    for (var i = 1u; i < SPLIT; i++) {
        sums += sh_team[(lane.team * SPLIT + i) * LANES];
    }
    // The next sum writes this memory again.
    workgroupBarrier();
    return sums;
}

fn team_sum(value: f32, lane: Lane) -> f32 {
    return team_sum4(vec4(value, 0.0, 0.0, 0.0), lane).x;
}

fn team_max(value: f32, lane: Lane) -> f32 {
    let at = lane.part * LANES + lane.in_part;
    sh_team[at].x = value;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane.in_part < step {
            sh_team[at].x = max(sh_team[at].x, sh_team[at + step].x);
        }
        workgroupBarrier();
    }
    var most = sh_team[lane.team * SPLIT * LANES].x;
    for (var i = 1u; i < SPLIT; i++) {
        most = max(most, sh_team[(lane.team * SPLIT + i) * LANES].x);
    }
    workgroupBarrier();
    return most;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let team = LANES * SPLIT;
    kernel(group, Lane(index / team, index % team, index / LANES, index % LANES));
}
