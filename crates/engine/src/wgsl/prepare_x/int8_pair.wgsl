// Quantises a column of x to int8 hi/lo pairs, 16-bit integers as two signed base-256 digits: x[c, k] / s(c), where s(c) scales the
// largest magnitude of column c to 32,512. Stored in blocks of 16 columns by 32 of k, high digits before low ones; the scales s follow
// the blocks of 16 columns. Rows of the unquantised weight are stored the same way, before the columns.
@group(0) @binding(4) var<storage, read_write> h: array<u32>;

fn prepare_column(column: u32, place: u32, lane: Lane) {
    put_digits(column, false, (p.rows + 15u) / 16u * 16u + place, lane);
}

fn prepare_row(row: u32, lane: Lane) {
    put_digits(row, true, row, lane);
}

fn number4(index: u32, is_row: bool, k: u32) -> vec4<f32> {
    if is_row {
        return numbers(raw_at(index * p.row_units + k / 32u, k % 32u / 4u));
    }
    return x4(index, k);
}

fn put_digits(index: u32, is_row: bool, place: u32, lane: Lane) {
    let groups = p.row_units * 8u;
    var largest = vec4(0.0);
    for (var i = lane.index; i < groups; i += WG) {
        largest = max(largest, abs(number4(index, is_row, i * 4u)));
    }
    // Avoids a division by zero in columns of zeros.
    let most = max(wg_max(max(max(largest.x, largest.y), max(largest.z, largest.w)), lane), 1.0e-30);
    let inverse = 32512.0 / most;
    let start = place / 16u * (p.row_units * 256u + 16u);
    for (var i = lane.index; i < groups; i += WG) {
        let number = vec4<i32>(round(number4(index, is_row, i * 4u) * inverse));
        let high = (number + vec4(128)) >> vec4(8u);
        let at = start + i / 8u * 256u + place % 16u * 8u + i % 8u;
        h[at] = bytes_of(high);
        h[at + 128u] = bytes_of(number - high * 256);
    }
    if lane.index == 0u {
        h[start + p.row_units * 256u + place % 16u] = bitcast<u32>(most / 32512.0);
    }
}

fn bytes_of(digits: vec4<i32>) -> u32 {
    let bytes = bitcast<vec4<u32>>(digits) & vec4(255u);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}
