// Packs heads of 64 for encoder flash attention: queries, then keys, then values. Tokens that are not live give zeros.
// One workgroup per head and 16 tokens.
//#use transform
//#use layout

struct Params {
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    // Blocks of 16 tokens; the last ones may be empty.
    blocks: u32,
    eps: f32,
    // The first vec4 of the heads in their rows, and the row length in vec4s.
    q_first: u32,
    q_stride: u32,
    k_first: u32,
    k_stride: u32,
    v_first: u32,
    v_stride: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> v: array<vec4<f32>>;

const DIM4: u32 = 16u;
const QUERIES: u32 = 0u;
const KEYS: u32 = 1u;
const VALUES: u32 = 2u;

var<workgroup> sh_numbers: array<vec4<f32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let kind = select(select(VALUES, KEYS, group.y < p.heads + p.kv_heads), QUERIES, group.y < p.heads);
    let token = min(group.x * 16u + lane / DIM4, p.tokens - 1u);
    let dim4 = lane % DIM4;
    var numbers: vec4<f32>;
    if kind == QUERIES {
        numbers = q[token * p.q_stride + p.q_first + group.y * DIM4 + dim4];
    } else if kind == KEYS {
        numbers = k[token * p.k_stride + p.k_first + (group.y - p.heads) * DIM4 + dim4];
    } else {
        numbers = v[token * p.v_stride + p.v_first + (group.y - p.heads - p.kv_heads) * DIM4 + dim4];
    }
    let live = group.x * 16u + lane / DIM4 < min(run.count, p.tokens);
    let head = select(vec4(0.0), transformed(numbers, token, lane, kind), live);
    store(head, (group.y * p.blocks + group.x) * 256u, lane, kind);
}
