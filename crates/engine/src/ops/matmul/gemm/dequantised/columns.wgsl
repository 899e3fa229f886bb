// Columns of the weight as rows, padded with zeros: neighbouring lanes have neighbouring rows of a unit, and store neighbouring floats.
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn dequantise(i: u32) {
    let unit = i / p.stride;
    let row = i % p.stride;
    if unit >= p.len {
        return;
    }
    let weights = load_unit(min(row, p.rows - 1u) * p.row_units + p.start + unit);
    let padding = row >= p.rows;
    put(unit, 0u, row, select(weights[0], vec4(0.0), padding));
    put(unit, 1u, row, select(weights[1], vec4(0.0), padding));
    put(unit, 2u, row, select(weights[2], vec4(0.0), padding));
    put(unit, 3u, row, select(weights[3], vec4(0.0), padding));
    put(unit, 4u, row, select(weights[4], vec4(0.0), padding));
    put(unit, 5u, row, select(weights[5], vec4(0.0), padding));
    put(unit, 6u, row, select(weights[6], vec4(0.0), padding));
    put(unit, 7u, row, select(weights[7], vec4(0.0), padding));
}

// The part begins at a block, so columns of its units can be counted from there.
fn put(unit: u32, group: u32, row: u32, four: vec4<f32>) {
    let at = unit_column(unit, group) * p.stride + row;
    y[at] = four.x;
    y[at + p.stride] = four.y;
    y[at + 2u * p.stride] = four.z;
    y[at + 3u * p.stride] = four.w;
}
