// Copies a column of x unchanged to column `place`.
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;

fn prepare_column(column: u32, place: u32, lane: Lane) {
    for (var i = lane.index; i < p.width / 4u; i += WG) {
        h[place * (p.width / 4u) + i] = x4(column, i * 4u);
    }
}

// Rows of the weight need no conversion.
fn prepare_row(row: u32, lane: Lane) {
}
