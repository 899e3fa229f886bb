// Row t of function(i) as f16 column t     one workgroup per row; the part `function` declares its inputs, from binding 3 on
//#use function
// Before the arrays in workgroup memory of the next part: naga fails on overrides that come later.
//#use f16_columns
//#use reduce

@group(0) @binding(2) var<storage, read_write> y: array<f16>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    let start = row * p.width;
    if start >= p.len {
        return;
    }
    var most = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        most = max(most, abs(function(start + j)));
    }
    let exponent = f16_exponent(wg_max(most, lane));
    let inverse = f16_inverse(exponent);
    let first = f16_start(row);
    for (var j = lane.index; j < p.width; j += WG) {
        y[first + f16_place(j)] = f16(function(start + j) * inverse);
    }
    for (var j = p.width + lane.index; j < f16_padded(); j += WG) {
        y[first + j] = f16(0.0);
    }
    if lane.index == 0u {
        y[first + f16_padded()] = f16(exponent);
    }
}
