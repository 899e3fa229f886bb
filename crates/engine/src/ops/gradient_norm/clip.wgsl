// y = settings, their last number times min(1, limit / length)     one lane per number
struct Params {
    len: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> settings: array<f32>;
@group(0) @binding(3) var<storage, read> squares: array<f32>;
@group(0) @binding(4) var<storage, read> limit: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
    if i >= p.len {
        return;
    }
    var value = settings[i];
    if i == p.len - 1u {
        // The length of what the update sees: its settings may scale gradients already.
        let length = sqrt(squares[0]) * value;
        if length > limit[0] {
            value *= limit[0] / length;
        }
    }
    y[i] = value;
}
