// Head norm and RoPE, written to workgroup memory.
const QUERY: u32 = 0u;
const KEY: u32 = 1u;
const VALUE: u32 = 2u;

@group(0) @binding(5) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> q_norm: array<vec4<f32>>;
// Two RoPE pairs per vec4: (cosine, sine, cosine, sine).
@group(0) @binding(7) var<storage, read> rope: array<vec4<f32>>;

fn query4(token: u32, head: u32, dim4: u32) -> vec4<f32> {
    return q[p.q_first + token * p.q_stride + head * DIM4 + dim4];
}

// A vec4 of the first half of a head, and the vec4 of the second half that it is rotated with.
struct Pair {
    a: vec4<f32>,
    b: vec4<f32>,
}

fn raw_pair(kind: u32, token: u32, head: u32, i: u32) -> Pair {
    return Pair(raw4(kind, token, head, i), raw4(kind, token, head, i + DIM4 / 2u));
}

fn norm_pair(kind: u32, i: u32) -> Pair {
    if QK_NORM == 0u {
        return Pair(vec4(1.0), vec4(1.0));
    }
    return Pair(norm4(kind, i), norm4(kind, i + DIM4 / 2u));
}

// The RMS norm factor of a head, from a lane's sum of squares.
fn norm_scale(kind: u32, squares: f32, lane: Lane) -> f32 {
    let scale = inverseSqrt(team_sum(squares, lane) / f32(WIDTH) + p.eps);
    return select(1.0, scale, select(QK_NORM, V_NORM, kind == VALUE) == 1u);
}

// Cosines and sines: one vec4 of each, or interleaved as in the table if adjacent elements rotate.
fn angles(kind: u32, token: u32, i: u32) -> Pair {
    if ADJACENT == 1u {
        if kind == VALUE {
            return Pair(vec4(1.0, 0.0, 1.0, 0.0), vec4(1.0, 0.0, 1.0, 0.0));
        }
        return Pair(rope[token * DIM4 + i], rope[token * DIM4 + i + DIM4 / 2u]);
    }
    if kind == VALUE {
        return Pair(vec4(1.0), vec4(0.0));
    }
    let at = (token * (DIM4 / 2u) + i) * 2u;
    let low = rope[at];
    let high = rope[at + 1u];
    return Pair(vec4(low.xz, high.xz), vec4(low.yw, high.yw));
}

fn rotated(x: Pair, norm: Pair, angle: Pair, scale: f32) -> Pair {
    let a = x.a * scale * norm.a;
    let b = x.b * scale * norm.b;
    if ADJACENT == 1u {
        return Pair(adjacent(a, angle.a), adjacent(b, angle.b));
    }
    return Pair(a * angle.a - b * angle.b, a * angle.b + b * angle.a);
}

// Rotates two pairs by (cosine, sine, cosine, sine).
fn adjacent(x: vec4<f32>, angle: vec4<f32>) -> vec4<f32> {
    return x * angle.xxzz + x.yxwz * vec4(-angle.y, angle.y, -angle.w, angle.w);
}

fn put(row: u32, i: u32, x: Pair, norm: Pair, angle: Pair, scale: f32) {
    let pair = rotated(x, norm, angle, scale);
    sh_q[row * DIM4 + i] = pair.a;
    sh_q[row * DIM4 + i + DIM4 / 2u] = pair.b;
}

// A team of lanes norms and rotates one head into row `row` of sh_q; rows from STAGED on are not written. A lane's first two pairs are
// prefetched before the team sums squares.
fn norm_rope(kind: u32, token: u32, head: u32, row: u32, lane: Lane) {
    let middle = DIM4 / 2u;
    let i = min(lane.index, middle - 1u);
    let pair_0 = raw_pair(kind, token, head, i);
    let norm_0 = norm_pair(kind, i);
    let angle_0 = angles(kind, token, i);
    let j = min(lane.index + LANES, middle - 1u);
    var pair_1 = Pair();
    var norm_1 = Pair();
    var angle_1 = Pair();
    if middle > LANES {
        pair_1 = raw_pair(kind, token, head, j);
        norm_1 = norm_pair(kind, j);
        angle_1 = angles(kind, token, j);
    }
    var squares = select(0.0, square(pair_0), lane.index < middle) + select(0.0, square(pair_1), lane.index + LANES < middle);
    for (var k = lane.index + 2u * LANES; k < middle; k += LANES) {
        squares += square(raw_pair(kind, token, head, k));
    }
    let scale = norm_scale(kind, squares, lane);
    if row >= STAGED {
        return;
    }
    if lane.index < middle {
        put(row, i, pair_0, norm_0, angle_0, scale);
    }
    if lane.index + LANES < middle {
        put(row, j, pair_1, norm_1, angle_1, scale);
    }
    for (var k = lane.index + 2u * LANES; k < middle; k += LANES) {
        put(row, k, raw_pair(kind, token, head, k), norm_pair(kind, k), angles(kind, token, k), scale);
    }
}

fn square(pair: Pair) -> f32 {
    return dot(pair.a, pair.a) + dot(pair.b, pair.b);
}

fn load_queries(rows: Rows, lane: Lane) {
    for (var r = 0u; r < ROWS; r += TEAMS) {
        let row = r + lane.team;
        let place = row_place(rows, min(row, ROWS - 1u));
        norm_rope(QUERY, place / HEADS, place % HEADS, select(STAGED, row, row < ROWS), lane);
    }
}
