// Matrix units in wgpu's syntax, for heads in blocks: a subgroup multiplies 16 × 16 matrices of f16 and accumulates in f32.
enable f16;
enable wgpu_cooperative_matrix;

alias Left = coop_mat16x16<f16, A>;
alias Right = coop_mat16x16<f16, B>;
alias Block = coop_mat16x16<f32, C>;

// Nothing to do: the hardware distributes the lanes.
fn init_units(lane: u32) {
}

// A block row-major, or transposed.
fn left_heads(at: u32) -> Left {
    return coopLoadT<Left>(&x[at], 4u);
}

fn right_heads(at: u32) -> Right {
    return coopLoad<Right>(&x[at], 4u);
}

// Weights of 16 keys; `number` is the index of their register.
fn left_weights(block: u32, number: u32) -> Left {
    return coopLoadT<Left>(&sh_w[block * 4u], WEIGHT_STRIDE);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    return coopMultiplyAdd(a, b, sums);
}

// Row-major, with a stride of `stride` vec4s.
fn put_rows(sums: Block, at: u32, stride: u32) {
    coopStoreT(sums, &sh_y[at], stride);
}

fn take_rows(at: u32, stride: u32) -> Block {
    return coopLoadT<Block>(&sh_y[at], stride);
}
