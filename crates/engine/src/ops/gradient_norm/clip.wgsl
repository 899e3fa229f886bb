// y = settings, the last one times min(1, limit / norm)     one lane per setting
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
        // The norm that the update sees: its settings may scale gradients already.
        let norm = sqrt(squares[0]) * value;
        if norm > limit[0] {
            value *= limit[0] / norm;
        }
    }
    y[i] = value;
}
