// The branch with what an adapter adds to it: a + B z, where z lies behind a. B is turned, so that neighbours read neighbours.
//#use factor
//#use branch_spot
// The inner size, a multiple of four.
override BRANCH_RANK: u32 = 16u;

fn branch_at(quad: u32) -> vec4<f32> {
    var sums = a[quad];
    // Sixteen at a time are asked for at once: loops wait for memory in every turn.
    for (var i = 0u; i < BRANCH_RANK; i += 16u) {
        sums += (branch_sums(quad, i) + branch_sums(quad, i + 4u)) + (branch_sums(quad, i + 8u) + branch_sums(quad, i + 12u));
    }
    return sums;
}

// Four of the inner size; behind its end they are read as the last ones and do not count.
fn branch_sums(quad: u32, first: u32) -> vec4<f32> {
    let i = min(first, BRANCH_RANK - 4u);
    let z = a[(p.width + i) / 4u];
    let at = i * p.branch_stride + quad;
    let sums = z.x * low_quad(branch_b[at]) + z.y * low_quad(branch_b[at + p.branch_stride])
        + z.z * low_quad(branch_b[at + p.branch_stride * 2u]) + z.w * low_quad(branch_b[at + p.branch_stride * 3u]);
    return select(vec4(0.0), sums, first < BRANCH_RANK);
}
