// What an adapter adds to the branch: B z, where z lies after a. B is turned, so that neighbours read neighbours. A caller that prefetches other
// numbers too does so first: each turn of the loops waits for memory.
//#use factor
//#use branch_spot
const BRANCH_LOW = true;
// The inner size, a multiple of four.
override BRANCH_RANK: u32 = 16u;

fn branch_more(quad: u32) -> vec4<f32> {
    var sum = vec4(0.0);
    for (var i = 0u; i < BRANCH_RANK; i += 4u) {
        sum += more_of(quad, i);
    }
    return sum;
}

fn branch_more_two(one: u32, two: u32) -> array<vec4<f32>, 2> {
    var sums = array<vec4<f32>, 2>();
    for (var i = 0u; i < BRANCH_RANK; i += 4u) {
        sums[0] += more_of(one, i);
        sums[1] += more_of(two, i);
    }
    return sums;
}

fn more_of(quad: u32, i: u32) -> vec4<f32> {
    let z = a[(p.width + i) / 4u];
    let at = i * p.branch_stride + quad;
    return z.x * low_quad(branch_b[at]) + z.y * low_quad(branch_b[at + p.branch_stride])
        + z.z * low_quad(branch_b[at + p.branch_stride * 2u]) + z.w * low_quad(branch_b[at + p.branch_stride * 3u]);
}
