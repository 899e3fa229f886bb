// Query heads first, then keys and values.
//#use kv_heads
@group(0) @binding(8) var<storage, read> q_raw: array<f32>;
@group(0) @binding(9) var<storage, read> q_norm: array<f32>;
@group(0) @binding(10) var<storage, read_write> q: array<vec4<f32>>;

fn raw(head: u32, token: u32, j: u32) -> f32 {
    if head < p.heads {
        return q_raw[p.q_first + token * p.q_stride + head * WIDTH + j];
    }
    return kv_raw(head - p.heads, token, j);
}

fn weight(head: u32, j: u32) -> f32 {
    if head < p.heads {
        if QK_NORM == 0u {
            return 1.0;
        }
        return q_norm[j];
    }
    return kv_weight(head - p.heads, j);
}

fn is_normed(head: u32) -> bool {
    if head < p.heads {
        return QK_NORM == 1u;
    }
    return kv_is_normed(head - p.heads);
}

fn rope_angle(head: u32, token: u32, i: u32) -> vec2<f32> {
    if head < p.heads {
        return rope[token * HALF + i];
    }
    return kv_rope_angle(head - p.heads, token, i);
}

fn store(head: u32, token: u32, lane: u32) {
    if head >= p.heads {
        kv_store(head - p.heads, token, lane);
        return;
    }
    for (var j = lane * 4u; j < WIDTH; j += WG * 4u) {
        q[((token * p.heads + head) * WIDTH + j) / 4u] = row4(j);
    }
}
