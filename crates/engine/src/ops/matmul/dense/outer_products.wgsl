// y = base + scale * sum over t of the outer product of wide[t, i] and narrow[t, j]     one workgroup per COLUMNS4 * 4 columns i and 16 ranks j
// A lane sums a share of t for four columns and 16 ranks.
override COLUMNS4: u32 = 4u;
//#use base

struct Params {
    terms: u32,
    // Columns that take part, row width and first column, in vec4s.
    wide4: u32,
    wide_row4: u32,
    wide_first4: u32,
    narrow4: u32,
    narrow_row4: u32,
    narrow_first4: u32,
    // Strides of the result.
    y_wide: u32,
    y_narrow: u32,
    scale: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> wide: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> narrow: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

override SHARES: u32 = 256u / COLUMNS4;
// Results of a workgroup for four ranks, and groups of 16 shares that are summed by different lanes.
override RESULTS: u32 = COLUMNS4 * 16u;
override GROUPS: u32 = 16u / COLUMNS4;

// 16 sums of each lane: four columns, four ranks.
var<workgroup> sh: array<f32, 4096>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let ranks = (p.narrow4 + 3u) / 4u;
    let left4 = grid_index(group) / ranks * COLUMNS4;
    let first4 = grid_index(group) % ranks * 4u;
    let share = lane / COLUMNS4;
    // Columns past the end repeat the last one and are not written.
    let column4 = min(left4 + lane % COLUMNS4, p.wide4 - 1u);
    var s0 = mat4x4<f32>();
    var s1 = mat4x4<f32>();
    var s2 = mat4x4<f32>();
    var s3 = mat4x4<f32>();
    // Four terms are loaded before they are used.
    for (var t = share; t < p.terms; t += 4u * SHARES) {
        let w0 = wide_at(t, column4);
        let w1 = wide_at(t + SHARES, column4);
        let w2 = wide_at(t + 2u * SHARES, column4);
        let w3 = wide_at(t + 3u * SHARES, column4);
        s0 += outer(w0, narrow_at(t, first4));
        s1 += outer(w0, narrow_at(t, first4 + 1u));
        s2 += outer(w0, narrow_at(t, first4 + 2u));
        s3 += outer(w0, narrow_at(t, first4 + 3u));
        s0 += outer(w1, narrow_at(t + SHARES, first4));
        s1 += outer(w1, narrow_at(t + SHARES, first4 + 1u));
        s2 += outer(w1, narrow_at(t + SHARES, first4 + 2u));
        s3 += outer(w1, narrow_at(t + SHARES, first4 + 3u));
        s0 += outer(w2, narrow_at(t + 2u * SHARES, first4));
        s1 += outer(w2, narrow_at(t + 2u * SHARES, first4 + 1u));
        s2 += outer(w2, narrow_at(t + 2u * SHARES, first4 + 2u));
        s3 += outer(w2, narrow_at(t + 2u * SHARES, first4 + 3u));
        s0 += outer(w3, narrow_at(t + 3u * SHARES, first4));
        s1 += outer(w3, narrow_at(t + 3u * SHARES, first4 + 1u));
        s2 += outer(w3, narrow_at(t + 3u * SHARES, first4 + 2u));
        s3 += outer(w3, narrow_at(t + 3u * SHARES, first4 + 3u));
    }
    let sums = vec4(
        over_shares(s0, lane),
        over_shares(s1, lane),
        over_shares(s2, lane),
        over_shares(s3, lane),
    );
    let total = over_groups(sums, lane);
    if lane < RESULTS {
        let element = lane / COLUMNS4;
        let column = (left4 + lane % COLUMNS4) * 4u + element % 4u;
        let rank = first4 * 4u + element / 4u;
        write(column, rank, total.x);
        write(column, rank + 4u, total.y);
        write(column, rank + 8u, total.z);
        write(column, rank + 12u, total.w);
    }
}

fn wide_at(t: u32, column4: u32) -> vec4<f32> {
    return select(vec4(0.0), wide[min(t, p.terms - 1u) * p.wide_row4 + p.wide_first4 + column4], t < p.terms);
}

// Terms and ranks past the end repeat the last ones: the terms' factors are zero, the ranks are not written.
fn narrow_at(t: u32, rank4: u32) -> vec4<f32> {
    return narrow[min(t, p.terms - 1u) * p.narrow_row4 + p.narrow_first4 + min(rank4, p.narrow4 - 1u)];
}

fn outer(w: vec4<f32>, n: vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(w * n.x, w * n.y, w * n.z, w * n.w);
}

// One result's sum over a group of 16 shares; lanes next to each other have other columns, then other elements, then other groups.
fn over_shares(s: mat4x4<f32>, lane: u32) -> f32 {
    workgroupBarrier();
    store(s[0], 0u, lane);
    store(s[1], 4u, lane);
    store(s[2], 8u, lane);
    store(s[3], 12u, lane);
    workgroupBarrier();
    let element = lane % RESULTS / COLUMNS4;
    let first = lane / RESULTS * 16u;
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) {
        // Lanes with different elements read different banks.
        let share = first + (i + element) % 16u;
        sum += sh[element * 256u + share * COLUMNS4 + lane % COLUMNS4];
    }
    return sum;
}

fn store(s: vec4<f32>, element: u32, lane: u32) {
    sh[element * 256u + lane] = s.x;
    sh[(element + 1u) * 256u + lane] = s.y;
    sh[(element + 2u) * 256u + lane] = s.z;
    sh[(element + 3u) * 256u + lane] = s.w;
}

// The sums of all groups, in the lanes of the first.
fn over_groups(sums: vec4<f32>, lane: u32) -> vec4<f32> {
    workgroupBarrier();
    store(sums, 0u, lane);
    workgroupBarrier();
    var total = sums;
    if lane < RESULTS {
        for (var i = 1u; i < GROUPS; i++) {
            let at = i * RESULTS + lane;
            total += vec4(sh[at], sh[256u + at], sh[512u + at], sh[768u + at]);
        }
    }
    return total;
}

fn write(column: u32, rank: u32, sum: f32) {
    if column < p.wide4 * 4u && rank < p.narrow4 * 4u {
        let at = column * p.y_wide + rank * p.y_narrow;
        y[at] = base(at) + p.scale * sum;
    }
}
