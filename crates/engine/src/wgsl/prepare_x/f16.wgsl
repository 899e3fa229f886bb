// Converts a column of x to f16, in the order of the weights' units: x[c, k] / 2^e(c), where e(c) scales the largest magnitude of
// column c to [2^14, 2^15): nothing overflows, and values of at least 2^-28 of the largest keep eleven bits. Written as column `place`.
enable f16;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f16>>;

fn prepare_column(column: u32, place: u32, lane: Lane) {
    let groups = p.row_units * 8u;
    var largest = vec4(0.0);
    for (var i = lane.index; i < groups; i += WG) {
        largest = max(largest, abs(x4(column, i * 4u)));
    }
    let most = wg_max(max(max(largest.x, largest.y), max(largest.z, largest.w)), lane);
    // The exponent bits of an f32; the clamp keeps both powers of two normal.
    let exponent = clamp(i32(bitcast<u32>(most) >> 23u) - 127 - 14, -126, 126);
    let inverse = bitcast<f32>(u32(127 - exponent) << 23u);
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
