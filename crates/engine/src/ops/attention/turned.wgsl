// The norm of a head and its rotation, on the way into workgroup memory.
const QUERY: u32 = 0u;
const KEY: u32 = 1u;
const VALUE: u32 = 2u;

@group(0) @binding(5) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> q_norm: array<vec4<f32>>;
// Two pairs of a head in each: (cosine, sine, cosine, sine).
@group(0) @binding(7) var<storage, read> rope: array<vec4<f32>>;

fn query4(token: u32, head: u32, quad: u32) -> vec4<f32> {
    return q[p.q_first + token * p.q_stride + head * QUADS + quad];
}

// One head by a team of lanes, into a row of sh_q; into none behind the last.
fn norm_turn(kind: u32, token: u32, head: u32, row: u32, lane: Lane) {
    var squares = 0.0;
    for (var quad = lane.index; quad < QUADS; quad += LANES) {
        let x = raw4(kind, token, head, quad);
        squares += dot(x, x);
    }
    let scale = inverseSqrt(team_sum(squares, lane) / f32(WIDTH) + p.eps);
    if row >= ROWS {
        return;
    }
    let middle = QUADS / 2u;
    for (var i = lane.index; i < middle; i += LANES) {
        let a = raw4(kind, token, head, i) * scale * norm4(kind, i);
        let b = raw4(kind, token, head, i + middle) * scale * norm4(kind, i + middle);
        var cosine = vec4(1.0);
        var sine = vec4(0.0);
        if kind != VALUE {
            let low = rope[(token * middle + i) * 2u];
            let high = rope[(token * middle + i) * 2u + 1u];
            cosine = vec4(low.xz, high.xz);
            sine = vec4(low.yw, high.yw);
        }
        sh_q[row * QUADS + i] = a * cosine - b * sine;
        sh_q[row * QUADS + i + middle] = a * sine + b * cosine;
    }
}

fn bring_queries(rows: Rows, lane: Lane) {
    for (var r = 0u; r < ROWS; r += TEAMS) {
        let row = r + lane.team;
        let place = row_place(rows, min(row, ROWS - 1u));
        norm_turn(QUERY, place / p.heads, place % p.heads, row, lane);
    }
}
