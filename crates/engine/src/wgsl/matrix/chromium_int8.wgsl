// Matrix units in Chromium's syntax: a subgroup multiplies 16 × 32 by 32 × 16 matrices of int8 and accumulates in i32.
enable chromium_experimental_subgroup_matrix;
// Offsets and operands are uniform in a subgroup, but derived from the lane index by a division, which the compiler's uniformity
// analysis does not see through.
diagnostic(off, chromium.subgroup_matrix_uniformity);

alias Left = subgroup_matrix_left<i8, 32, 16>;
alias Right = subgroup_matrix_right<i8, 16, 32>;
alias Block = subgroup_matrix_result<i32, 16, 16>;

// Nothing to do: the hardware distributes the lanes.
fn init_units(lane: u32) {
}

// 16 rows by 32 of k.
fn left(at: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&x, at, 8u);
}

// 32 of k by 16 columns.
fn right(at: u32) -> Right {
    return subgroupMatrixLoad<Right, col_major>(&x, at, 8u);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

// Stores a block column-major.
fn stage_block(sums: Block, at: u32) {
    subgroupMatrixStore<col_major>(&sh_y, at, sums, 16u);
}
