// Matrix units in Chromium's syntax: a subgroup multiplies 16 × 16 matrices of f16 and accumulates in f32.
enable f16;
enable chromium_experimental_subgroup_matrix;
// Offsets and operands are uniform in a subgroup, but derived from the lane index by a division, which the compiler's uniformity
// analysis does not see through.
diagnostic(off, chromium.subgroup_matrix_uniformity);

alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Block = subgroup_matrix_result<f32, 16, 16>;

// Nothing to do: the hardware distributes the lanes.
fn init_units(lane: u32) {
}

// 16 rows by 16 of k.
fn left(at: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&sh_w, at, STRIDE);
}

// 16 of k by 16 columns.
fn right(at: u32) -> Right {
    return subgroupMatrixLoad<Right, col_major>(&sh_x, at, STRIDE);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

// Stores a block column-major.
fn stage_block(sums: Block, at: u32) {
    subgroupMatrixStore<col_major>(&sh_y, at, sums, 16u);
}

// 16 rows by 16 of k, stored k-major with `stride` vec4s between consecutive k.
fn left_transposed(at: u32, stride: u32) -> Left {
    return subgroupMatrixLoad<Left, col_major>(&sh_w, at, stride);
}

// 16 of k by 16 columns, stored k-major with `stride` vec4s between consecutive k.
fn right_transposed(at: u32, stride: u32) -> Right {
    return subgroupMatrixLoad<Right, row_major>(&sh_x, at, stride);
}

// Reads a block that `stage_block` stored.
fn read_block(at: u32) -> Block {
    return subgroupMatrixLoad<Block, col_major>(&sh_y, at, 16u);
}
