// Rows of the weight: neighbouring lanes have neighbouring units of a row.
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

fn dequantise(i: u32) {
    if i >= p.len * p.row_units {
        return;
    }
    let unit = i % p.row_units;
    let row = i / p.row_units * p.stride;
    let weights = load_unit(p.start * p.row_units + i);
    y[(row + unit_column(unit, 0u)) / 4u] = weights[0];
    y[(row + unit_column(unit, 1u)) / 4u] = weights[1];
    y[(row + unit_column(unit, 2u)) / 4u] = weights[2];
    y[(row + unit_column(unit, 3u)) / 4u] = weights[3];
    y[(row + unit_column(unit, 4u)) / 4u] = weights[4];
    y[(row + unit_column(unit, 5u)) / 4u] = weights[5];
    y[(row + unit_column(unit, 6u)) / 4u] = weights[6];
    y[(row + unit_column(unit, 7u)) / 4u] = weights[7];
}
