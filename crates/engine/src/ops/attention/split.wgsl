// o[row] = sum over j of softmax(q[row] . k[j]) * v[j]     over one stretch of the keys j, for ROWS rows that share a kv head
// One workgroup per stretch (x), block of rows (y) and kv head (z). Keys come in tiles: a team of lanes scores four keys for all
// rows at once, then each lane sums one quad of the values for all rows, so that keys and values are read once.
// With one stretch the result is written, else what `combine` needs: the sums, and behind all of them (largest score, sum of
// weights) of each row and stretch.
override WIDTH: u32 = 256u;
override QUADS: u32 = 64u;
override ROWS: u32 = 1u;
// Keys in a tile, and quads of them: as many as there are teams.
override TILE: u32 = 16u;
override TEAMS: u32 = 4u;
// Lanes that sum the same quad of a head, over different keys.
override PARTS: u32 = 2u;
//#use team
//#use kv
//#use keys
//#use stretches
//#use queries

// Local arrays cannot be sized by an override.
const MOST_ROWS: u32 = 8u;

@group(0) @binding(4) var<storage, read_write> o: array<vec4<f32>>;

// The queries; before them, keys and values on their way to the caches; after them, sums of the parts.
var<workgroup> sh_q: array<vec4<f32>, ROWS * QUADS>;
var<workgroup> sh_weight: array<vec4<f32>, ROWS * TEAMS>;
var<workgroup> sh_rescale: array<f32, ROWS>;
var<workgroup> sh_row: array<vec2<f32>, ROWS>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let here = stretch(group.x);
    if here.first >= here.end {
        return;
    }
    var block = group.y;
    var end = group.y + 1u;
    if OWN && group.x == 0u {
        // Who writes the caches attends for all rows: nobody else may read what is written here.
        if group.y > 0u {
            return;
        }
        bring_keys(group.z, lane);
        end = p.row_blocks;
    }
    for (; block < end; block++) {
        attend(Rows(block * ROWS, group.z), here, group.x, lane);
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

fn attend(rows: Rows, here: Stretch, number: u32, lane: Lane) {
    let id = lane.team * LANES + lane.index;
    bring_queries(rows, lane);
    workgroupBarrier();
    // What this lane sums: one quad of the head, for all rows.
    let part = id / QUADS;
    let quad = id % QUADS;
    var sums: array<vec4<f32>, MOST_ROWS>;
    for (var r = 0u; r < ROWS; r++) {
        sums[r] = vec4(0.0);
    }
    // Largest score and sum of weights of row id / TEAMS; the sum is kept by the first of the row's lanes.
    var row = vec2(HIDDEN, 0.0);
    for (var tile = here.first; tile < here.end; tile += TILE) {
        let live = min(TILE, here.end - tile);
        score(tile, live, rows, lane);
        workgroupBarrier();
        let rescale = weigh(row.x, id);
        row = vec2(rescale.y, row.y * rescale.x);
        workgroupBarrier();
        if id < ROWS * TEAMS && id % TEAMS == 0u {
            row.y += row_sum(id);
        }
        if part < PARTS {
            for (var r = 0u; r < ROWS; r++) {
                sums[r] *= sh_rescale[r];
            }
            for (var i = part; i * 4u < live; i += PARTS) {
                // Keys behind the last one weigh nothing; they are read as the last one, which is finite.
                let v_0 = v4(cache_at(tile + i * 4u, rows.kv_head) + quad * 4u);
                let v_1 = v4(cache_at(tile + min(i * 4u + 1u, live - 1u), rows.kv_head) + quad * 4u);
                let v_2 = v4(cache_at(tile + min(i * 4u + 2u, live - 1u), rows.kv_head) + quad * 4u);
                let v_3 = v4(cache_at(tile + min(i * 4u + 3u, live - 1u), rows.kv_head) + quad * 4u);
                for (var r = 0u; r < ROWS; r++) {
                    let w = sh_weight[r * TEAMS + i];
                    sums[r] += w.x * v_0 + w.y * v_1 + w.z * v_2 + w.w * v_3;
                }
            }
        }
        workgroupBarrier();
    }
    if id < ROWS * TEAMS && id % TEAMS == 0u {
        sh_row[id / TEAMS] = row;
    }
    for (var other = PARTS - 1u; other > 0u; other--) {
        if part == other {
            for (var r = 0u; r < ROWS; r++) {
                let before = select(sh_q[r * QUADS + quad], vec4(0.0), other == PARTS - 1u);
                sh_q[r * QUADS + quad] = before + sums[r];
            }
        }
        workgroupBarrier();
    }
    if PARTS == 1u {
        workgroupBarrier();
    }
    if part == 0u {
        for (var r = 0u; r < ROWS; r++) {
            let others = select(sh_q[r * QUADS + quad], vec4(0.0), PARTS == 1u);
            write(rows, r, number, quad, sums[r] + others);
        }
    }
    // The next block of rows takes this memory again.
    workgroupBarrier();
}

// Scores of a tile, hidden where a row does not see the key: four keys for a team of lanes, all rows at once.
fn score(tile: u32, live: u32, rows: Rows, lane: Lane) {
    let keys = vec4(lane.team * 4u) + vec4(0u, 1u, 2u, 3u);
    let read = min(keys, vec4(live - 1u));
    let at_0 = cache_at(tile + read.x, rows.kv_head);
    let at_1 = cache_at(tile + read.y, rows.kv_head);
    let at_2 = cache_at(tile + read.z, rows.kv_head);
    let at_3 = cache_at(tile + read.w, rows.kv_head);
    var dots: array<vec4<f32>, MOST_ROWS>;
    for (var r = 0u; r < ROWS; r++) {
        dots[r] = vec4(0.0);
    }
    for (var quad = lane.index; quad < QUADS; quad += LANES) {
        let k_0 = k4(at_0 + quad * 4u);
        let k_1 = k4(at_1 + quad * 4u);
        let k_2 = k4(at_2 + quad * 4u);
        let k_3 = k4(at_3 + quad * 4u);
        for (var r = 0u; r < ROWS; r++) {
            let q = sh_q[r * QUADS + quad];
            dots[r] += vec4(dot(q, k_0), dot(q, k_1), dot(q, k_2), dot(q, k_3));
        }
    }
    // Lane r keeps row r.
    var mine = vec4(0.0);
    for (var r = 0u; r < ROWS; r++) {
        let sum = team_sum4(dots[r], lane);
        mine = select(mine, sum, lane.index == r);
    }
    if lane.index < ROWS {
        let position = vec4(run.position + token_of(rows.first + lane.index));
        let places = vec4(tile) + keys;
        let seen = (places <= position) & (position - places < vec4(p.window)) & (keys < vec4(live));
        sh_weight[lane.index * TEAMS + lane.team] = select(vec4(HIDDEN), mine, seen);
    }
}

// Scores become weights, four for a lane. Returns what earlier weights of the row are to be multiplied with, and its new largest
// score.
fn weigh(before: f32, id: u32) -> vec2<f32> {
    let row = min(id / TEAMS, ROWS - 1u);
    var most4 = vec4(before);
    for (var i = 0u; i < TEAMS; i++) {
        most4 = max(most4, sh_weight[row * TEAMS + i]);
    }
    let most = max(max(most4.x, most4.y), max(most4.z, most4.w));
    let scores = sh_weight[min(id, ROWS * TEAMS - 1u)];
    workgroupBarrier();
    let rescale = exp(before - most);
    if id < ROWS * TEAMS {
        sh_weight[id] = select(exp(scores - vec4(most)), vec4(0.0), scores <= vec4(HIDDEN));
        if id % TEAMS == 0u {
            sh_rescale[row] = rescale;
        }
    }
    return vec2(rescale, most);
}

// Sum of the weights of a row whose first quad of keys is at `first`.
fn row_sum(first: u32) -> f32 {
    var sum4 = vec4(0.0);
    for (var i = 0u; i < TEAMS; i++) {
        sum4 += sh_weight[first + i];
    }
    return dot(sum4, vec4(1.0));
}

fn write(rows: Rows, r: u32, number: u32, quad: u32, sum: vec4<f32>) {
    if rows.first + r >= p.tokens * heads_of_group() {
        return;
    }
    let place = row_place(rows, r);
    if p.splits == 1u {
        let live = token_of(rows.first + r) < run.count;
        o[place * QUADS + quad] = select(vec4(0.0), sum / sh_row[r].y, live);
        return;
    }
    let at = place * p.splits + number;
    o[at * QUADS + quad] = sum;
    if quad == 0u {
        o[p.tokens * p.heads * p.splits * QUADS + at] = vec4(sh_row[r], 0.0, 0.0);
    }
}
