// Parameters of GEMV kernels.
// A piece is what a lane multiplies at a time: one unit or two.
struct Params {
    plane0: u32,
    plane1: u32,
    plane2: u32,
    plane3: u32,
    width: u32,
    // Pieces per row, and of all rows that are summed for an output.
    row_pieces: u32,
    pieces: u32,
    rows: u32,
    first_row: u32,
    // Number of turns, and of workgroups that loop over them.
    turns: u32,
    groups: u32,
    // The prologue's norms.
    eps: f32,
    scaled: u32,
    // First column of the epilogue's slice.
    offset: u32,
    // Rows per expert.
    expert_rows: u32,
    // LoRA: vec4s of the rank and of a row of B in memory; for down rows: rows of A, and vec4s per row.
    lora_vec4s: u32,
    lora_stride: u32,
    // Per token: rows of x, elements of the output and of the epilogue's input, experts.
    x_columns: u32,
    y_width: u32,
    long_width: u32,
    chosen: u32,
    // vec4s of a row of B in memory, if the branch has a LoRA up-projection.
    branch_stride: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
// Whether rows of x from run.count on are padding, which kernels skip.
override PADDED: u32 = 1u;
// The token that is computed.
var<private> token: u32;
