// One or two rows: each team of lanes holds the queries in registers, processes four keys at a time and accumulates their values, weighted
// relative to the largest score so far (online softmax). Teams are reduced once, after the last key.
var<workgroup> sh_team: array<vec2<f32>, TEAMS>;

// A lane's vec4s of a head: the first RoPE pair, and the second if there is one.
struct HeadSlice {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn query(token: u32, head: u32, lane: Lane) -> HeadSlice {
    let pair_0 = raw_pair(QUERY, token, head, lane.index);
    let norm_0 = norm_pair(QUERY, lane.index);
    let angle_0 = angles(QUERY, token, lane.index);
    var pair_1 = Pair();
    var norm_1 = Pair();
    var angle_1 = Pair();
    if PAIRS > 1u {
        pair_1 = raw_pair(QUERY, token, head, lane.index + LANES);
        norm_1 = norm_pair(QUERY, lane.index + LANES);
        angle_1 = angles(QUERY, token, lane.index + LANES);
    }
    let squares = dot(pair_0.a, pair_0.a) + dot(pair_0.b, pair_0.b) + dot(pair_1.a, pair_1.a) + dot(pair_1.b, pair_1.b);
    let scale = norm_scale(QUERY, squares, lane);
    let one = rotated(pair_0, norm_0, angle_0, scale);
    let two = rotated(pair_1, norm_1, angle_1, scale);
    return HeadSlice(one.a, one.b, two.a, two.b);
}

// A lane's vec4s of four keys or values; columns are keys.
struct Four {
    a: mat4x4<f32>,
    b: mat4x4<f32>,
    c: mat4x4<f32>,
    d: mat4x4<f32>,
}

fn keys16(at: vec4<u32>) -> mat4x4<f32> {
    return mat4x4<f32>(k4(at.x), k4(at.y), k4(at.z), k4(at.w));
}

fn values16(at: vec4<u32>) -> mat4x4<f32> {
    return mat4x4<f32>(v4(at.x), v4(at.y), v4(at.z), v4(at.w));
}

fn four_keys(at: vec4<u32>) -> Four {
    var keys: Four;
    keys.a = keys16(at);
    keys.b = keys16(at + vec4(PARTNER * 4u));
    if PAIRS > 1u {
        keys.c = keys16(at + vec4(LANES * 4u));
        keys.d = keys16(at + vec4((LANES + PARTNER) * 4u));
    }
    return keys;
}

fn four_values(at: vec4<u32>) -> Four {
    var values: Four;
    values.a = values16(at);
    values.b = values16(at + vec4(PARTNER * 4u));
    if PAIRS > 1u {
        values.c = values16(at + vec4(LANES * 4u));
        values.d = values16(at + vec4((LANES + PARTNER) * 4u));
    }
    return values;
}

// A team's online softmax of a row: largest score, sum of weights, weighted sum of values.
struct Found {
    most: f32,
    total: f32,
    sums: HeadSlice,
}

// Softmax weights of four keys, and the factor for the sums so far.
struct Scored {
    most: f32,
    rescale: f32,
    weights: vec4<f32>,
}

fn scored(q: HeadSlice, keys: Four, seen: vec4<bool>, before: f32, lane: Lane) -> Scored {
    var dots = q.a * keys.a + q.b * keys.b;
    if PAIRS > 1u {
        dots += q.c * keys.c + q.d * keys.d;
    }
    let scores = select(vec4(MASKED), team_sum4(dots, lane), seen);
    let most = max(before, max(max(scores.x, scores.y), max(scores.z, scores.w)));
    return Scored(most, exp(before - most), select(vec4(0.0), exp(scores - vec4(most)), seen));
}

fn grown(found: Found, by: Scored, values: Four) -> Found {
    var sums = found.sums;
    sums.a = sums.a * by.rescale + values.a * by.weights;
    sums.b = sums.b * by.rescale + values.b * by.weights;
    if PAIRS > 1u {
        sums.c = sums.c * by.rescale + values.c * by.weights;
        sums.d = sums.d * by.rescale + values.d * by.weights;
    }
    return Found(by.most, found.total * by.rescale + dot(by.weights, vec4(1.0)), sums);
}

fn attend(rows: Rows, here: KvSplit, number: u32, lane: Lane) {
    let place = row_place(rows, 0u);
    let other_place = row_place(rows, ROWS - 1u);
    let prefetched = prefetch_lora(place % HEADS, lane);
    let q = query(place / HEADS, place % HEADS, lane);
    var other_q: HeadSlice;
    if ROWS > 1u {
        other_q = query(other_place / HEADS, other_place % HEADS, lane);
    }
    var found = Found(MASKED, 0.0, HeadSlice());
    var other = Found(MASKED, 0.0, HeadSlice());
    for (var tile = here.first; tile < here.end; tile += TILE) {
        let places = vec4(tile + lane.team * 4u) + vec4(0u, 1u, 2u, 3u);
        // Keys out of range have weight 0 and are clamped to the last one, which is finite.
        let read = min(places, vec4(here.end - 1u));
        let at = vec4(lane.index * 4u) + vec4(
            cache_at(read.x, rows.kv_head),
            cache_at(read.y, rows.kv_head),
            cache_at(read.z, rows.kv_head),
            cache_at(read.w, rows.kv_head),
        );
        let seen = places < vec4(here.end);
        let keys = four_keys(at);
        let one = scored(q, keys, seen, found.most, lane);
        var two: Scored;
        if ROWS > 1u {
            two = scored(other_q, keys, seen, other.most, lane);
        }
        let values = four_values(at);
        found = grown(found, one, values);
        if ROWS > 1u {
            other = grown(other, two, values);
        }
    }
    reduce_teams(found, rows.first, place, number, lane);
    lora_dot_head(prefetched, place, number, lane);
    if ROWS > 1u {
        reduce_teams(other, min(rows.first + 1u, rows.end - 1u), other_place, number, lane);
    }
}

// Reduces the teams' online softmax of a row.
fn reduce_teams(found: Found, row: u32, place: u32, number: u32, lane: Lane) {
    let first = lane.team * DIM4 + lane.index;
    sh_q[first] = found.sums.a;
    sh_q[first + PARTNER] = found.sums.b;
    if PAIRS > 1u {
        sh_q[first + LANES] = found.sums.c;
        sh_q[first + LANES + PARTNER] = found.sums.d;
    }
    if lane.index == 0u {
        sh_team[lane.team] = vec2(found.most, found.total);
    }
    workgroupBarrier();
    let dim4 = lane.team * LANES + lane.index;
    if dim4 < DIM4 {
        var about = sh_team[0];
        for (var team = 1u; team < TEAMS; team++) {
            about.x = max(about.x, sh_team[team].x);
        }
        about.y = 0.0;
        var sum = vec4(0.0);
        for (var team = 0u; team < TEAMS; team++) {
            let of_team = sh_team[team];
            let factor = exp(of_team.x - about.x);
            about.y += factor * of_team.y;
            sum += factor * sh_q[team * DIM4 + dim4];
        }
        write_dim4(row, place, number, dim4, sum, about);
        keep_for_lora(dim4, sum);
    }
    // The next row reuses this memory.
    workgroupBarrier();
}
