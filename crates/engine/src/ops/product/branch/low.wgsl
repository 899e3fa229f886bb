// The branch with what an adapter adds to it: a + B z, where z lies behind a. B is turned, so that neighbours read neighbours.
//#use factor
//#use branch_spot
// The inner size, a multiple of four.
override BRANCH_RANK: u32 = 16u;

fn branch_at(quad: u32) -> vec4<f32> {
    var sums = a[quad];
    for (var i = 0u; i < BRANCH_RANK; i += 4u) {
        let z = a[(p.width + i) / 4u];
        let at = i * p.branch_stride + quad;
        sums += z.x * low_quad(branch_b[at]) + z.y * low_quad(branch_b[at + p.branch_stride])
            + z.z * low_quad(branch_b[at + p.branch_stride * 2u]) + z.w * low_quad(branch_b[at + p.branch_stride * 3u]);
    }
    return sums;
}
