// The branch with what an adapter adds to it: a + B z, where z lies behind a.
//#use factor
//#use branch_spot
// Of the inner size.
override BRANCH_QUADS: u32 = 4u;

fn branch_at(quad: u32) -> vec4<f32> {
    let row = quad * 4u * p.branch_stride;
    var sums = a[quad];
    // Four at a time are asked for at once: loops wait for memory in every turn. Rows of B end with zeros.
    for (var i = 0u; i < BRANCH_QUADS; i += 4u) {
        sums += (branch_sums(row, i) + branch_sums(row, i + 1u)) + (branch_sums(row, i + 2u) + branch_sums(row, i + 3u));
    }
    return sums;
}

fn branch_sums(row: u32, i: u32) -> vec4<f32> {
    let z = a[p.width / 4u + min(i, BRANCH_QUADS - 1u)];
    let at = row + i;
    return vec4(
        dot(low_quad(branch_b[at]), z), dot(low_quad(branch_b[at + p.branch_stride]), z),
        dot(low_quad(branch_b[at + p.branch_stride * 2u]), z), dot(low_quad(branch_b[at + p.branch_stride * 3u]), z),
    );
}
