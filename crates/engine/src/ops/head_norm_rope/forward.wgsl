// y[t, h, :] = x[t, h, :] / sqrt(mean(x[t, h, :]^2) + eps) * w, then each pair turned by the angle of (t, i)
// One workgroup per head h and token t. What heads there are, and where they go, is the part's to say.
// Named first: naga loses count of constants that follow a computed array size.
override WIDTH: u32 = 256u;
override HALF: u32 = 128u;
// How far apart the elements of a pair lie: half a head, or half of each axis' part.
override APART: u32 = 128u;
//#use reduce
//#use heads

struct Params {
    eps: f32,
    heads: u32,
    kv_heads: u32,
    slots: u32,
    // Where the heads of a token lie in their rows.
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
    let scale = inverseSqrt(wg_sum(squares, lane) / f32(WIDTH) + p.eps);
    for (var i = lane.index; i < HALF; i += WG) {
        let first = i / APART * 2u * APART + i % APART;
        let a = sh_row[first] * scale * weight(head, first);
        let b = sh_row[first + APART] * scale * weight(head, first + APART);
        let angle = turn(head, token, i);
        sh_row[first] = a * angle.x - b * angle.y;
        sh_row[first + APART] = a * angle.y + b * angle.x;
    }
    workgroupBarrier();
    store(head, token, lane.index);
}

fn row4(at: u32) -> vec4<f32> {
    return vec4(sh_row[at], sh_row[at + 1u], sh_row[at + 2u], sh_row[at + 3u]);
}
