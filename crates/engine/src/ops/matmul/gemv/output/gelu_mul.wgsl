// GELU, times an element of the epilogue's input.
//#use gelu
@group(0) @binding(5) var<storage, read> long: array<f32>;

fn output_of(row: u32, sum: f32) -> f32 {
    return gelu(sum) * long[token * p.long_width + p.offset + row];
}
