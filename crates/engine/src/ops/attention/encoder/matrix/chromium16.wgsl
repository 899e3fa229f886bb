// Matrix units in Chromium's syntax, for heads in blocks: a subgroup multiplies 16 × 16 matrices of f16 and accumulates in f32.
enable f16;
enable chromium_experimental_subgroup_matrix;

alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Block = subgroup_matrix_result<f32, 16, 16>;

// Nothing to do: the hardware distributes the lanes.
fn init_units(lane: u32) {
}

// A block row-major, or transposed.
fn left_heads(at: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&x, at, 4u);
}

fn right_heads(at: u32) -> Right {
    return subgroupMatrixLoad<Right, col_major>(&x, at, 4u);
}

// Weights of 16 keys; `number` is the index of their register.
fn left_weights(block: u32, number: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&sh_w, block * 4u, WEIGHT_STRIDE);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

// Row-major, with a stride of `stride` vec4s.
fn put_rows(sums: Block, at: u32, stride: u32) {
    subgroupMatrixStore<row_major>(&sh_y, at, sums, stride);
}

fn take_rows(at: u32, stride: u32) -> Block {
    return subgroupMatrixLoad<Block, row_major>(&sh_y, at, stride);
}
