// Rows stored as f16 columns for matrix units, in the form that prepare_x/f16 writes: in the order of the units of the matmul's weight, where
// two halves of SPAN elements share their units, 16 elements of each half per unit. A column has UNITS units, padded with zeros to pairs, then
// the exponent of the power of two that it was divided by. Kernels declare the array of f16 values.
//#use f16_exponent
override SPAN: u32 = 32u;
override UNITS: u32 = 1u;

// Elements of a column without its exponent.
fn f16_padded() -> u32 {
    return (UNITS + 1u) / 2u * 64u;
}

fn f16_start(column: u32) -> u32 {
    return column * (f16_padded() + 8u);
}

fn f16_place(j: u32) -> u32 {
    let unit = j / SPAN * (SPAN / 32u) + j % (SPAN / 2u) / 16u;
    let group = j % SPAN / (SPAN / 2u) * 4u + j % 16u / 4u;
    return unit * 32u + group * 4u + j % 4u;
}
