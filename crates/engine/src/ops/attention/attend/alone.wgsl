// One row by itself: a team of lanes keeps the query in registers, takes four keys at a time and sums their values, weighed relative to
// the largest score it has seen. Teams meet once, behind the last key.
var<workgroup> sh_team: array<vec2<f32>, TEAMS>;

// A lane's quads: the first pair, and the second where there is one.
struct Quads {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn query(token: u32, head: u32, lane: Lane) -> Quads {
    let near = raw_pair(QUERY, token, head, lane.index);
    let near_norm = norm_pair(QUERY, lane.index);
    let near_angle = angles(QUERY, token, lane.index);
    var far = Pair();
    var far_norm = Pair();
    var far_angle = Pair();
    if PAIRS > 1u {
        far = raw_pair(QUERY, token, head, lane.index + LANES);
        far_norm = norm_pair(QUERY, lane.index + LANES);
        far_angle = angles(QUERY, token, lane.index + LANES);
    }
    let squares = dot(near.a, near.a) + dot(near.b, near.b) + dot(far.a, far.a) + dot(far.b, far.b);
    let scale = inverseSqrt(team_sum(squares, lane) / f32(WIDTH) + p.eps);
    let one = turned(near, near_norm, near_angle, scale);
    let two = turned(far, far_norm, far_angle, scale);
    return Quads(one.a, one.b, two.a, two.b);
}

fn keys16(at: vec4<u32>) -> mat4x4<f32> {
    return mat4x4<f32>(k4(at.x), k4(at.y), k4(at.z), k4(at.w));
}

fn values16(at: vec4<u32>) -> mat4x4<f32> {
    return mat4x4<f32>(v4(at.x), v4(at.y), v4(at.z), v4(at.w));
}

fn attend(rows: Rows, here: Stretch, number: u32, lane: Lane) {
    let place = row_place(rows, 0u);
    let q = query(place / p.heads, place % p.heads, lane);
    var most = HIDDEN;
    var total = 0.0;
    var sums = Quads();
    for (var tile = here.first; tile < here.end; tile += TILE) {
        let places = vec4(tile + lane.team * 4u) + vec4(0u, 1u, 2u, 3u);
        // Keys behind the last one weigh nothing; they are read as the last one, which is finite.
        let keys = min(places, vec4(here.end - 1u));
        let near = vec4(cache_at(keys.x, rows.kv_head), cache_at(keys.y, rows.kv_head), cache_at(keys.z, rows.kv_head), cache_at(keys.w, rows.kv_head))
            + vec4(lane.index * 4u);
        let far = near + vec4(LANES * 4u);
        var dots = q.a * keys16(near) + q.b * keys16(near + vec4(PARTNER * 4u));
        if PAIRS > 1u {
            dots += q.c * keys16(far) + q.d * keys16(far + vec4(PARTNER * 4u));
        }
        let seen = places < vec4(here.end);
        let scores = select(vec4(HIDDEN), team_sum4(dots, lane), seen);
        let larger = max(most, max(max(scores.x, scores.y), max(scores.z, scores.w)));
        let weights = select(vec4(0.0), exp(scores - vec4(larger)), seen);
        let rescale = exp(most - larger);
        most = larger;
        total = total * rescale + dot(weights, vec4(1.0));
        sums.a = sums.a * rescale + values16(near) * weights;
        sums.b = sums.b * rescale + values16(near + vec4(PARTNER * 4u)) * weights;
        if PAIRS > 1u {
            sums.c = sums.c * rescale + values16(far) * weights;
            sums.d = sums.d * rescale + values16(far + vec4(PARTNER * 4u)) * weights;
        }
    }
    let first = lane.team * QUADS + lane.index;
    sh_q[first] = sums.a;
    sh_q[first + PARTNER] = sums.b;
    if PAIRS > 1u {
        sh_q[first + LANES] = sums.c;
        sh_q[first + LANES + PARTNER] = sums.d;
    }
    if lane.index == 0u {
        sh_team[lane.team] = vec2(most, total);
    }
    workgroupBarrier();
    let quad = lane.team * LANES + lane.index;
    if quad < QUADS {
        var about = sh_team[0];
        for (var team = 1u; team < TEAMS; team++) {
            about.x = max(about.x, sh_team[team].x);
        }
        about.y = 0.0;
        var sum = vec4(0.0);
        for (var team = 0u; team < TEAMS; team++) {
            let found = sh_team[team];
            let factor = exp(found.x - about.x);
            about.y += factor * found.y;
            sum += factor * sh_q[team * QUADS + quad];
        }
        write_quad(rows.first, place, number, quad, sum, about);
    }
    // The next block of rows takes this memory again.
    workgroupBarrier();
}
