// k are the weight's rows, and zeros follow the last one: adjacent lanes have adjacent units of a row. The part begins at a block, so columns
// of its units can be counted from there.
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

fn dequantise(group: u32, index: u32) {
    let i = group * 256u + index;
    let row = i / p.unit_count;
    let unit = i % p.unit_count;
    if row >= p.row_count {
        return;
    }
    let weights = unit_of(row, unit);
    let padding = p.start_row + row >= p.rows;
    put(unit, 0u, row, select(weights[0], vec4(0.0), padding));
    put(unit, 1u, row, select(weights[1], vec4(0.0), padding));
    put(unit, 2u, row, select(weights[2], vec4(0.0), padding));
    put(unit, 3u, row, select(weights[3], vec4(0.0), padding));
    put(unit, 4u, row, select(weights[4], vec4(0.0), padding));
    put(unit, 5u, row, select(weights[5], vec4(0.0), padding));
    put(unit, 6u, row, select(weights[6], vec4(0.0), padding));
    put(unit, 7u, row, select(weights[7], vec4(0.0), padding));
}

fn put(unit: u32, group: u32, row: u32, four: vec4<f32>) {
    y[(row * p.stride + unit_column(unit, group)) / 4u] = four;
}
