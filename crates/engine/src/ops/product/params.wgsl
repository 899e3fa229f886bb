// What kernels of products know.
// A piece is what a lane takes of a row at a time: a unit, or two of them.
struct Params {
    plane0: u32,
    plane1: u32,
    plane2: u32,
    plane3: u32,
    width: u32,
    // Of a row, and of all that is summed for a result.
    row_pieces: u32,
    pieces: u32,
    rows: u32,
    first_row: u32,
    // Workgroups take turns: how many turns there are in all, and how many workgroups.
    turns: u32,
    groups: u32,
    // Of the norms in front.
    eps: f32,
    scaled: u32,
    // Where the slice after the product starts.
    offset: u32,
    // Of experts: rows of one.
    expert_rows: u32,
    // Of what is added: quads of the inner size, and of a row of B in memory; of what is made beside: rows of A, and quads of a row.
    low_quads: u32,
    low_stride: u32,
    // Of several tokens: columns of x of each, numbers of the result and of the longer row, experts.
    x_columns: u32,
    y_width: u32,
    long_width: u32,
    chosen: u32,
    // Quads of a row of B in memory, where an adapter adds to the branch in front.
    branch_stride: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
// Which token is computed.
var<private> token: u32;
