// Converts a column of x to f16, in the order of the weights' units: x[c, k] / 2^e(c), where e(c) is the exponent of the column's largest
// magnitude. Written as column `place`.
//#use f16_exponent
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f16>>;

fn prepare_column(column: u32, place: u32, lane: Lane) {
    let groups = p.row_units * 8u;
    var largest = vec4(0.0);
    for (var i = lane.index; i < groups; i += WG) {
        largest = max(largest, abs(x4(column, i * 4u)));
    }
    let most = wg_max(max(max(largest.x, largest.y), max(largest.z, largest.w)), lane);
    let exponent = f16_exponent(most);
    let inverse = f16_inverse(exponent);
    // Columns are padded to pairs of units; two more vec4s hold the exponent and keep columns aligned.
    let padded = (groups + 15u) / 16u * 16u;
    let start = place * (padded + 2u);
    for (var i = lane.index; i < padded; i += WG) {
        h[start + i] = vec4<f16>(x_vec4(column, i) * inverse);
    }
    if lane.index == 0u {
        h[start + padded] = vec4(f16(exponent));
    }
}

fn x_vec4(column: u32, i: u32) -> vec4<f32> {
    if i >= p.row_units * 8u {
        return vec4(0.0);
    }
    return x4(column, unit_column(i / 8u, i % 8u));
}

// Rows of the weight are converted by the GEMM kernel.
fn prepare_row(row: u32, lane: Lane) {
}
