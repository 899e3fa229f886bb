// Outputs are f32.
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn store_output(index: u32, value: f32) {
    y[token * p.y_width + index] = value;
}

fn flush_outputs(turn: u32, lane: Lane) {}
