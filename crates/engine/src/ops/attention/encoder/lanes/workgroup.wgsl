// Eight adjacent lanes share rows and reduce through workgroup memory: works on every device.
var<workgroup> sh_found: array<array<vec4<f32>, 9>, 8>;

// Lanes that share rows are adjacent.
fn row_lane_of(lane: u32) -> u32 {
    return lane / 8u;
}

fn key_lane_of(lane: u32) -> u32 {
    return lane % 8u;
}

// Stores the values of the eight lanes in workgroup memory until the next call.
fn share(mine: vec4<f32>, lane: u32) {
    workgroupBarrier();
    sh_found[lane / 8u][lane % 8u] = mine;
    workgroupBarrier();
}

fn max_of_eight(mine: vec4<f32>, lane: u32) -> vec4<f32> {
    share(mine, lane);
    let at = lane / 8u;
    let low = max(max(sh_found[at][0], sh_found[at][1]), max(sh_found[at][2], sh_found[at][3]));
    return max(low, max(max(sh_found[at][4], sh_found[at][5]), max(sh_found[at][6], sh_found[at][7])));
}

fn sum_of_eight(mine: vec4<f32>, lane: u32) -> vec4<f32> {
    share(mine, lane);
    let at = lane / 8u;
    let low = sh_found[at][0] + sh_found[at][1] + sh_found[at][2] + sh_found[at][3];
    return low + (sh_found[at][4] + sh_found[at][5] + sh_found[at][6] + sh_found[at][7]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    kernel(group, lane);
}
