// Columns quantised to int8 hi/lo pairs, stored after the weight's rows.
@group(0) @binding(3) var<storage, read> x: array<i32>;

// The first word of a block of 16 rows, and of a block of 16 columns.
fn rows_start(sixteen: u32) -> u32 {
    return sixteen * (p.row_units * 256u + 16u);
}

fn columns_start(sixteen: u32) -> u32 {
    return rows_start((p.rows + 15u) / 16u + sixteen);
}

// The scale of a column, and of a row.
fn column_scale(column: u32) -> f32 {
    return bitcast<f32>(x[columns_start(column / 16u) + p.row_units * 256u + column % 16u]);
}

fn row_scale(row: u32) -> f32 {
    return bitcast<f32>(x[rows_start(row / 16u) + p.row_units * 256u + row % 16u]);
}
