// GELU, times a number of a longer row.
//#use activation
@group(0) @binding(5) var<storage, read> long: array<f32>;

fn made_of(row: u32, sum: f32) -> f32 {
    return gelu(sum) * long[token * p.long_width + p.offset + row];
}
