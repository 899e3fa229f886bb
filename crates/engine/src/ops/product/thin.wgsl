// z[r] = sum over k of A[r, k] * x[k]     a workgroup makes two of a few rows
// After norms x = m * (u + n * v), where u and v are known column by column, but m and n only when all columns were seen. A meets u and v
// apart, in the same pass that sums what m and n are made of: nobody waits for a norm.
//#use team
//#use factor
//#use front

// Quads a lane prefetches before it uses the first; all lanes have as many.
override AHEAD: u32 = 1u;

struct Params {
    width: u32,
    // Quads of a row of A in memory.
    stride: u32,
    rows: u32,
    eps: f32,
    scaled: u32,
    // Quads of a row of B in memory, where an adapter adds to the branch in front.
    branch_stride: u32,
}

struct Column {
    u: vec4<f32>,
    v: vec4<f32>,
    // Of the residual stream: what was in it, and what n times is added.
    stream: vec4<f32>,
    more: vec4<f32>,
    // What m and n are made of.
    about: vec4<f32>,
}

struct Norms {
    m: f32,
    n: f32,
    // Of the residual stream.
    scale: f32,
}

// Products of two rows with u, then with v, and sums for the norms.
struct Sums {
    products: vec4<f32>,
    about: vec4<f32>,
    last: Column,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> low_a: array<LowQuad>;
@group(0) @binding(3) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> z: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let first = group.x * 2u;
    // A row past the end is read as the last one and not written.
    let rows = vec2(first, min(first + 1u, p.rows - 1u));
    let quads = p.width / 4u;
    var sums = Sums();
    for (var i = lane.index; i < quads; i += WG * AHEAD) {
        sums = met(sums, rows, i);
        if AHEAD > 1u {
            sums = met(sums, rows, i + WG);
        }
        if AHEAD > 2u {
            sums = met(sums, rows, i + WG * 2u);
        }
    }
    let norms = norms_of(sums.about, lane);
    let products = team_sum4(sums.products, lane);
    if lane.index < 2u && first + lane.index < p.rows {
        z[first + lane.index] = norms.m * (products[lane.index] + norms.n * products[lane.index + 2u]);
    }
    // Each workgroup passes on a share of the columns.
    let groups = (p.rows + 1u) / 2u;
    let share = (quads + groups - 1u) / groups;
    if quads <= WG {
        // Each lane has what its column is made of.
        if lane.index < quads && lane.index / share == group.x {
            hand_on(lane.index, sums.last, norms);
        }
        return;
    }
    for (var i = lane.index; i < share; i += WG) {
        if group.x * share + i < quads {
            hand_on(group.x * share + i, column_at(group.x * share + i), norms);
        }
    }
}

fn met(before: Sums, rows: vec2<u32>, i: u32) -> Sums {
    // Asked for first: a column may be waited for.
    let one = low_quad(low_a[rows.x * p.stride + i]);
    let other = low_quad(low_a[rows.y * p.stride + i]);
    let column = column_at(i);
    let products = vec4(dot(one, column.u), dot(other, column.u), dot(one, column.v), dot(other, column.v));
    return Sums(before.products + products, before.about + column.about, column);
}
