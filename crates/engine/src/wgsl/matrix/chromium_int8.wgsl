// Matrix units in Chromium's syntax: a subgroup multiplies 16 × 32 by 32 × 16 bytes and sums whole numbers.
enable chromium_experimental_subgroup_matrix;
// All lanes of a subgroup agree on where they are and what they take, but by a division of their number, which the compiler does not
// look through.
diagnostic(off, chromium.subgroup_matrix_uniformity);

alias Left = subgroup_matrix_left<i8, 32, 16>;
alias Right = subgroup_matrix_right<i8, 16, 32>;
alias Block = subgroup_matrix_result<i32, 16, 16>;

// Units know their lanes themselves.
fn init_units(lane: u32) {
}

// 16 rows and 32 of k.
fn left(at: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&x, at, 8u);
}

// 32 of k and 16 columns.
fn right(at: u32) -> Right {
    return subgroupMatrixLoad<Right, col_major>(&x, at, 8u);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

// Rows of a column are contiguous.
fn stage_block(sums: Block, at: u32) {
    subgroupMatrixStore<col_major>(&sh_y, at, sums, 16u);
}
