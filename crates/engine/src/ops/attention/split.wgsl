// o[row] = sum over j of softmax(q[row] . k[j]) * v[j]     over one stretch of the keys j, for ROWS rows that share a kv head
// One workgroup per stretch, block of rows and kv head. With one stretch the result is written, else what `combine` needs:
// per row and stretch the sums, then (largest score, sum of weights).
override WIDTH: u32 = 256u;
override QUADS: u32 = 64u;
override ROWS: u32 = 1u;
override TILE: u32 = 64u;
//#use team
//#use kv
//#use keys
//#use stretches

// Local arrays cannot be sized by an override.
const MOST_ROWS: u32 = 8u;

@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache: array<kv_word>;
@group(0) @binding(4) var<storage, read> v_cache: array<kv_word>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4<f32>>;

var<workgroup> sh_q: array<vec4<f32>, ROWS * QUADS>;
var<workgroup> sh_weight: array<f32, ROWS * TILE>;
var<workgroup> sh_rescale: array<f32, ROWS>;
var<workgroup> sh_row: array<vec2<f32>, ROWS>;
var<workgroup> sh_sum: array<vec4<f32>, WG>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let id = lane.team * LANES + lane.index;
    let rows = Rows(group.y * ROWS, group.z);
    let all = stretches();
    let first = all.first + group.x * all.length;
    if first >= all.end && p.splits > 1u {
        return;
    }
    let end = min(first + all.length, all.end);
    for (var i = id; i < ROWS * QUADS; i += WG) {
        sh_q[i] = q[row_place(rows, i / QUADS) * QUADS + i % QUADS];
    }
    workgroupBarrier();
    var sums: array<vec4<f32>, MOST_ROWS>;
    for (var r = 0u; r < ROWS; r++) {
        sums[r] = vec4(0.0);
    }
    // Largest score and sum of weights of row `lane.team`.
    var row = vec2(HIDDEN, 0.0);
    for (var tile = first; tile < end; tile += TILE) {
        let live = min(TILE, end - tile);
        score(tile, live, rows.kv_head, lane);
        workgroupBarrier();
        row = weigh(tile, live, rows, row, lane);
        workgroupBarrier();
        let part = id / QUADS;
        if part < WG / QUADS {
            for (var r = 0u; r < ROWS; r++) {
                sums[r] *= sh_rescale[r];
            }
            for (var i = part; i < live; i += WG / QUADS) {
                let v = v4(cache_at(tile + i, rows.kv_head) + id % QUADS * 4u);
                for (var r = 0u; r < ROWS; r++) {
                    sums[r] += sh_weight[r * TILE + i] * v;
                }
            }
        }
        workgroupBarrier();
    }
    if lane.index == 0u && lane.team < ROWS {
        sh_row[lane.team] = row;
    }
    for (var r = 0u; r < ROWS; r++) {
        sh_sum[id] = sums[r];
        workgroupBarrier();
        write(rows, r, group.x, id);
        workgroupBarrier();
    }
}

// A block of rows of one kv head.
struct Rows {
    first: u32,
    kv_head: u32,
}

// Rows behind the last one repeat it and are not written.
fn row_place(rows: Rows, r: u32) -> u32 {
    let last = p.tokens * heads_of_group() - 1u;
    return place_of(min(rows.first + r, last), rows.kv_head);
}

// Scores of a tile: a team of lanes per key, all rows at once, so that a key is read once.
fn score(tile: u32, live: u32, kv_head: u32, lane: Lane) {
    for (var i = 0u; i < TILE; i += WG / LANES) {
        let key = i + lane.team;
        let at = cache_at(tile + min(key, live - 1u), kv_head);
        var dots: array<f32, MOST_ROWS>;
        for (var r = 0u; r < ROWS; r++) {
            dots[r] = 0.0;
        }
        for (var quad = lane.index; quad < QUADS; quad += LANES) {
            let k = k4(at + quad * 4u);
            for (var r = 0u; r < ROWS; r++) {
                dots[r] += dot(sh_q[r * QUADS + quad], k);
            }
        }
        for (var r = 0u; r < ROWS; r++) {
            let sum = team_sum(dots[r], lane);
            if lane.index == 0u && key < TILE {
                sh_weight[r * TILE + key] = sum;
            }
        }
    }
}

// Scores become weights; a team of lanes per row. Returns the row's new largest score and sum.
fn weigh(tile: u32, live: u32, rows: Rows, before: vec2<f32>, lane: Lane) -> vec2<f32> {
    let mine = select(0u, live, lane.team < ROWS);
    let position = run.position + token_of(rows.first + lane.team);
    var largest = before.x;
    for (var i = lane.index; i < mine; i += LANES) {
        largest = max(largest, select(HIDDEN, sh_weight[lane.team * TILE + i], sees(position, tile + i)));
    }
    largest = team_max(largest, lane);
    var sum = 0.0;
    for (var i = lane.index; i < mine; i += LANES) {
        let weight = exp(sh_weight[lane.team * TILE + i] - largest);
        let seen = select(0.0, weight, sees(position, tile + i));
        sh_weight[lane.team * TILE + i] = seen;
        sum += seen;
    }
    let rescale = exp(before.x - largest);
    if lane.index == 0u && lane.team < ROWS {
        sh_rescale[lane.team] = rescale;
    }
    return vec2(largest, before.y * rescale + team_sum(sum, lane));
}

fn write(rows: Rows, r: u32, split: u32, id: u32) {
    if id >= QUADS || rows.first + r >= p.tokens * heads_of_group() {
        return;
    }
    var sum = sh_sum[id];
    for (var part = 1u; part < WG / QUADS; part++) {
        sum += sh_sum[part * QUADS + id];
    }
    let place = row_place(rows, r);
    if p.splits == 1u {
        let live = token_of(rows.first + r) < run.count;
        o[place * QUADS + id] = select(vec4(0.0), sum / sh_row[r].y, live);
        return;
    }
    let at = (place * p.splits + split) * (QUADS + 1u);
    o[at + id] = sum;
    if id == 0u {
        o[at + QUADS] = vec4(sh_row[r], 0.0, 0.0);
    }
}
