// Heads with RoPE and a common norm weight.
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> norm: array<f32>;
@group(0) @binding(4) var<storage, read> rope: array<vec2<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;

fn raw(head: u32, token: u32, j: u32) -> f32 {
    return x[p.q_first + token * p.q_stride + head * WIDTH + j];
}

fn weight(head: u32, j: u32) -> f32 {
    if QK_NORM == 0u {
        return 1.0;
    }
    return norm[j];
}

fn is_normed(head: u32) -> bool {
    return QK_NORM == 1u;
}

fn rope_angle(head: u32, token: u32, i: u32) -> vec2<f32> {
    return rope[token * HALF + i];
}

fn store(head: u32, token: u32, lane: u32) {
    for (var j = lane * 4u; j < WIDTH; j += WG * 4u) {
        y[((token * p.heads + head) * WIDTH + j) / 4u] = row4(j);
    }
}
