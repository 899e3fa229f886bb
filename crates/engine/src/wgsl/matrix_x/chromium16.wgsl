// Blocks of x in global memory: 16 of k by 16 columns, with `stride` vec4s between columns.
alias XBlock = Right;

fn x_block(at: u32, stride: u32) -> XBlock {
    return subgroupMatrixLoad<Right, col_major>(&x, at, stride);
}

fn multiply_add_x(a: Left, b: XBlock, sums: Block) -> Block {
    return multiply_add(a, b, sums);
}

// Browsers have no barrier of a subgroup, so that all lanes wait.
fn subgroup_barrier() {
    workgroupBarrier();
}
