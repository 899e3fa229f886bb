// Matrix units in Chromium's syntax: a subgroup multiplies 16 × 16 f16 numbers and sums in f32.
enable f16;
enable chromium_experimental_subgroup_matrix;
// All lanes of a subgroup agree on where they are and what they take, but by a division of their number, which the compiler does not
// look through.
diagnostic(off, chromium.subgroup_matrix_uniformity);

alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Block = subgroup_matrix_result<f32, 16, 16>;

// Units know their lanes themselves.
fn init_units(lane: u32) {
}

// 16 rows and 16 of k.
fn left(at: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&sh_w, at, STRIDE);
}

// 16 of k and 16 columns.
fn right(at: u32) -> Right {
    return subgroupMatrixLoad<Right, col_major>(&sh_x, at, STRIDE);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

// Rows of a column are contiguous.
fn stage_block(sums: Block, at: u32) {
    subgroupMatrixStore<col_major>(&sh_y, at, sums, 16u);
}

// 16 rows and 16 of k, where the rows of a k are contiguous, `stride` groups from one k to the next.
fn left_transposed(at: u32, stride: u32) -> Left {
    return subgroupMatrixLoad<Left, col_major>(&sh_w, at, stride);
}

// 16 of k and 16 columns, where the columns of a k are contiguous, `stride` groups from one k to the next.
fn right_transposed(at: u32, stride: u32) -> Right {
    return subgroupMatrixLoad<Right, row_major>(&sh_x, at, stride);
}

// What `stage_block` stored there.
fn read_block(at: u32) -> Block {
    return subgroupMatrixLoad<Block, col_major>(&sh_y, at, 16u);
}
