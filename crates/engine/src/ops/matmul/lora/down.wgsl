// z[r] = sum over k of A[r, k] * x[k]     the LoRA down-projection; one workgroup per two rows
// After norms x = m * (u + n * v), where u and v are known per column, but m and n only after a sum over all columns. A is multiplied by u
// and v separately, in the same pass that sums the squares for m and n, so no lane waits for a norm.
//#use team
//#use lora_weight
//#use down_prologue

// vec4s a lane loads before it uses the first; the same for all lanes.
override PREFETCHED: u32 = 1u;

struct Params {
    width: u32,
    // vec4s of a row of A in memory.
    stride: u32,
    rows: u32,
    eps: f32,
    scaled: u32,
    // vec4s of a row of B in memory, if the branch has a LoRA up-projection.
    branch_stride: u32,
}

struct Column {
    u: vec4<f32>,
    v: vec4<f32>,
    // Residual stream: its old value, and the addend divided by n.
    stream: vec4<f32>,
    addend: vec4<f32>,
    // Squares and products from which m and n are computed.
    squares: vec4<f32>,
}

struct Norms {
    m: f32,
    n: f32,
    // Scale of the residual stream.
    scale: f32,
}

// Dot products of two rows with u, then with v; sums for the norms; the last column.
struct Sums {
    products: vec4<f32>,
    squares: vec4<f32>,
    last: Column,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> lora_a: array<LoraVec4>;
@group(0) @binding(3) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> z: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let first = group.x * 2u;
    // A row past the end reads the last one and is not written.
    let rows = vec2(first, min(first + 1u, p.rows - 1u));
    let vec4s = p.width / 4u;
    var sums = Sums();
    for (var i = lane.index; i < vec4s; i += WG * PREFETCHED) {
        sums = accumulate(sums, rows, i);
        if PREFETCHED > 1u {
            sums = accumulate(sums, rows, i + WG);
        }
        if PREFETCHED > 2u {
            sums = accumulate(sums, rows, i + WG * 2u);
        }
    }
    let norms = norms_of(sums.squares, lane);
    let products = team_sum4(sums.products, lane);
    if lane.index < 2u && first + lane.index < p.rows {
        z[first + lane.index] = norms.m * (products[lane.index] + norms.n * products[lane.index + 2u]);
    }
    // Each workgroup writes a share of the columns.
    let groups = (p.rows + 1u) / 2u;
    let share = (vec4s + groups - 1u) / groups;
    if vec4s <= WG {
        // The lane still holds its column.
        if lane.index < vec4s && lane.index / share == group.x {
            write_results(lane.index, sums.last, norms);
        }
        return;
    }
    for (var i = lane.index; i < share; i += WG) {
        if group.x * share + i < vec4s {
            write_results(group.x * share + i, column_at(group.x * share + i), norms);
        }
    }
}

fn accumulate(before: Sums, rows: vec2<u32>, i: u32) -> Sums {
    // A is loaded first, since computing a column may wait.
    let one = lora_vec4(lora_a[rows.x * p.stride + i]);
    let other = lora_vec4(lora_a[rows.y * p.stride + i]);
    let column = column_at(i);
    let products = vec4(dot(one, column.u), dot(other, column.u), dot(one, column.v), dot(other, column.v));
    return Sums(before.products + products, before.squares + column.squares, column);
}
