// y[i, j] = base + scale * sum over k of a[i, k] * b[k, j]     one workgroup per tile of SIDE x SIDE results
// DEPTH elements of each row and column are staged at a time. With few tiles, p.chunks workgroups share one (split-K), each for a chunk of
// k, and write separate partial sums.
//#use base

struct Params {
    m: u32,
    n: u32,
    k: u32,
    a_m: u32,
    a_k: u32,
    b_n: u32,
    b_k: u32,
    scale: f32,
    chunks: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const SIDE: u32 = 16u;
const DEPTH: u32 = 64u;
// Rows are padded by one element, so that reads down a column fall into different banks.
const STRIDE: u32 = DEPTH + 1u;

var<workgroup> sh_a: array<f32, SIDE * STRIDE>;
var<workgroup> sh_b: array<f32, SIDE * STRIDE>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let across = (p.n + SIDE - 1u) / SIDE;
    let tiles = across * ((p.m + SIDE - 1u) / SIDE);
    let tile = grid_index(group) % tiles;
    let chunk = grid_index(group) / tiles;
    let top = tile / across * SIDE;
    let left = tile % across * SIDE;
    // Chunks are multiples of DEPTH.
    let length = (p.k + DEPTH * p.chunks - 1u) / (DEPTH * p.chunks) * DEPTH;
    let end = min((chunk + 1u) * length, p.k);
    let i = lane / SIDE;
    let j = lane % SIDE;
    var sum = 0.0;
    for (var first = chunk * length; first < end; first += DEPTH) {
        let a4 = vec4(load_a(top, first, lane), load_a(top, first, lane + 256u), load_a(top, first, lane + 512u), load_a(top, first, lane + 768u));
        let b4 = vec4(load_b(left, first, lane), load_b(left, first, lane + 256u), load_b(left, first, lane + 512u), load_b(left, first, lane + 768u));
        put_a(a4.x, lane);
        put_a(a4.y, lane + 256u);
        put_a(a4.z, lane + 512u);
        put_a(a4.w, lane + 768u);
        put_b(b4.x, lane);
        put_b(b4.y, lane + 256u);
        put_b(b4.z, lane + 512u);
        put_b(b4.w, lane + 768u);
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k += 8u) {
            sum += dot4(i, j, k) + dot4(i, j, k + 4u);
        }
        workgroupBarrier();
    }
    let row = top + i;
    let column = left + j;
    if row < p.m && column < p.n && chunk < p.chunks {
        let at = row * p.n + column;
        y[chunk * p.m * p.n + at] = base(at) + p.scale * sum;
    }
}

fn dot4(i: u32, j: u32, k: u32) -> f32 {
    let at = i * STRIDE + k;
    let bt = j * STRIDE + k;
    return sh_a[at] * sh_b[bt] + sh_a[at + 1u] * sh_b[bt + 1u] + sh_a[at + 2u] * sh_b[bt + 2u] + sh_a[at + 3u] * sh_b[bt + 3u];
}

// Row and position along k of the element that a lane loads: neighbouring lanes read neighbouring elements, transposed or not.
fn row_and_k(n: u32, along_k: bool) -> vec2<u32> {
    return select(vec2(n % SIDE, n / SIDE), vec2(n / DEPTH, n % DEPTH), along_k);
}

fn load_a(top: u32, first: u32, n: u32) -> f32 {
    let at = row_and_k(n, p.a_k == 1u);
    if top + at.x >= p.m || first + at.y >= p.k {
        return 0.0;
    }
    return a[(top + at.x) * p.a_m + (first + at.y) * p.a_k];
}

fn put_a(value: f32, n: u32) {
    let at = row_and_k(n, p.a_k == 1u);
    sh_a[at.x * STRIDE + at.y] = value;
}

fn load_b(left: u32, first: u32, n: u32) -> f32 {
    let at = row_and_k(n, p.b_k == 1u);
    if left + at.x >= p.n || first + at.y >= p.k {
        return 0.0;
    }
    return b[(left + at.x) * p.b_n + (first + at.y) * p.b_k];
}

fn put_b(value: f32, n: u32) {
    let at = row_and_k(n, p.b_k == 1u);
    sh_b[at.x * STRIDE + at.y] = value;
}
