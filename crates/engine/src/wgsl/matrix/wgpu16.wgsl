// Matrix units in wgpu's syntax: a subgroup multiplies 16 × 16 matrices of f16 and accumulates in f32.
enable f16;
enable wgpu_cooperative_matrix;

alias Left = coop_mat16x16<f16, A>;
alias Right = coop_mat16x16<f16, B>;
alias Block = coop_mat16x16<f32, C>;

// Nothing to do: the hardware distributes the lanes.
fn init_units(lane: u32) {
}

// 16 rows by 16 of k.
fn left(at: u32) -> Left {
    return coopLoadT<Left>(&sh_w[at], STRIDE);
}

// 16 of k by 16 columns.
fn right(at: u32) -> Right {
    return coopLoad<Right>(&sh_x[at], STRIDE);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    return coopMultiplyAdd(a, b, sums);
}

// Stores a block column-major.
fn stage_block(sums: Block, at: u32) {
    coopStore(sums, &sh_y[at], 16u);
}

// 16 rows by 16 of k, stored k-major with `stride` vec4s between consecutive k.
fn left_transposed(at: u32, stride: u32) -> Left {
    return coopLoad<Left>(&sh_w[at], stride);
}

// 16 of k by 16 columns, stored k-major with `stride` vec4s between consecutive k.
fn right_transposed(at: u32, stride: u32) -> Right {
    return coopLoadT<Right>(&sh_x[at], stride);
}

// Reads a block that `stage_block` stored.
fn read_block(at: u32) -> Block {
    return coopLoad<Block>(&sh_y[at], 16u);
}
