// Blocks of x in global memory: 16 of k by 16 columns, with `stride` vec4s between columns.
alias XBlock = Right;

fn x_block(at: u32, stride: u32) -> XBlock {
    return coopLoad<Right>(&x[at], stride);
}

fn multiply_add_x(a: Left, b: XBlock, sums: Block) -> Block {
    return multiply_add(a, b, sums);
}

// Waits for the other lanes of the subgroup.
fn subgroup_barrier() {
    subgroupBarrier();
}
