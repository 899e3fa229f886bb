// y[t, h, :] = x[t, h, :] / sqrt(mean(x[t, h, :]^2) + eps) * w, then each pair rotated by the angle of (t, i)
// One workgroup per head h and token t. The part `heads` defines which heads there are and where they are stored.
// Declared first: naga miscounts constants that follow a computed array size.
override WIDTH: u32 = 256u;
override HALF: u32 = 128u;
// Distance between the elements of a pair: half a head, a quarter with 2-D RoPE, or one.
override PAIR_STRIDE: u32 = 128u;
// Whether queries and keys are normed, with weights; whether values are normed, without weights.
override QK_NORM: u32 = 1u;
override V_NORM: u32 = 1u;
//#use reduce
//#use heads

struct Params {
    eps: f32,
    heads: u32,
    kv_heads: u32,
    slots: u32,
    // First element of a token's heads, and the row length in elements.
    q_first: u32,
    q_stride: u32,
    k_first: u32,
    k_stride: u32,
    v_first: u32,
    v_stride: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

var<workgroup> sh_row: array<f32, WIDTH>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let head = group.x;
    let token = group.y;
    var squares = 0.0;
    for (var j = lane.index; j < WIDTH; j += WG) {
        let value = raw(head, token, j);
        sh_row[j] = value;
        squares += value * value;
    }
    let normed = inverseSqrt(wg_sum(squares, lane) / f32(WIDTH) + p.eps);
    let scale = select(1.0, normed, is_normed(head));
    for (var i = lane.index; i < HALF; i += WG) {
        let first = i / PAIR_STRIDE * 2u * PAIR_STRIDE + i % PAIR_STRIDE;
        let a = sh_row[first] * scale * weight(head, first);
        let b = sh_row[first + PAIR_STRIDE] * scale * weight(head, first + PAIR_STRIDE);
        let angle = rope_angle(head, token, i);
        sh_row[first] = a * angle.x - b * angle.y;
        sh_row[first + PAIR_STRIDE] = a * angle.y + b * angle.x;
    }
    workgroupBarrier();
    store(head, token, lane.index);
}

fn row4(at: u32) -> vec4<f32> {
    return vec4(sh_row[at], sh_row[at + 1u], sh_row[at + 2u], sh_row[at + 3u]);
}
