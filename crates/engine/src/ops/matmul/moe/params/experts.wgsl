// Parameters of matmuls over experts. A slot is one expert of one token.
struct Params {
    plane0: u32,
    plane1: u32,
    plane2: u32,
    plane3: u32,
    width: u32,
    row_units: u32,
    // First row and number of rows of this slab, among the rows of all experts.
    slab_first: u32,
    slab_rows: u32,
    expert_rows: u32,
    experts: u32,
    slots: u32,
    chosen: u32,
    slots_per_column: u32,
    // Workgroups in one row of the grid.
    tiles: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

// Offset of row `row` of all experts in the slab, in units; rows outside are clamped to the slab.
fn row_start(row: u32) -> u32 {
    return (clamp(row, p.slab_first, p.slab_first + p.slab_rows - 1u) - p.slab_first) * p.row_units;
}

fn in_slab(row: u32) -> bool {
    return row >= p.slab_first && row < p.slab_first + p.slab_rows;
}

// Whether the slab has any of the rows from `first` to `end`.
fn overlaps_slab(first: u32, end: u32) -> bool {
    return end > p.slab_first && first < p.slab_first + p.slab_rows;
}
