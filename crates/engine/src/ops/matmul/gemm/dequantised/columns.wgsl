// k are the weight's columns: each workgroup has 8 units of 32 rows. Adjacent lanes have adjacent rows of a unit, and store adjacent floats.
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn dequantise(group: u32, index: u32) {
    let across = (p.stride + 31u) / 32u;
    let row = group % across * 32u + index % 32u;
    let unit = group / across * 8u + index / 32u;
    if unit >= p.unit_count || row >= p.stride {
        return;
    }
    let weights = unit_of(row, unit);
    put(unit, 0u, row, weights[0]);
    put(unit, 1u, row, weights[1]);
    put(unit, 2u, row, weights[2]);
    put(unit, 3u, row, weights[3]);
    put(unit, 4u, row, weights[4]);
    put(unit, 5u, row, weights[5]);
    put(unit, 6u, row, weights[6]);
    put(unit, 7u, row, weights[7]);
}

fn put(unit: u32, group: u32, row: u32, four: vec4<f32>) {
    let at = unit_column(unit, group) * p.stride + row;
    y[at] = four.x;
    y[at + p.stride] = four.y;
    y[at + 2u * p.stride] = four.z;
    y[at + 3u * p.stride] = four.w;
}
