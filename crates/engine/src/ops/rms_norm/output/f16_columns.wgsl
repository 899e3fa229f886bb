//#use f16_columns
@group(0) @binding(3) var<storage, read_write> y: array<f16>;

fn put(row: u32, scale: f32, lane: Lane) {
    let start = row * p.width;
    var most = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        most = max(most, abs(x[start + j] * scale * weight(j)));
    }
    let exponent = f16_exponent(wg_max(most, lane));
    let inverse = f16_inverse(exponent);
    let first = f16_start(row);
    for (var j = lane.index; j < p.width; j += WG) {
        y[first + f16_place(j)] = f16(x[start + j] * scale * weight(j) * inverse);
    }
    for (var j = p.width + lane.index; j < f16_padded(); j += WG) {
        y[first + j] = f16(0.0);
    }
    if lane.index == 0u {
        y[first + f16_padded()] = f16(exponent);
    }
}
