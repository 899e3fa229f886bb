@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn put(row: u32, scale: f32, lane: Lane) {
    let start = row * p.width;
    for (var j = lane.index; j < p.width; j += WG) {
        y[start + j] = x[start + j] * scale * weight(j);
    }
}
