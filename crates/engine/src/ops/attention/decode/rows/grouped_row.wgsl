// Grouped rows: a team of lanes scores four keys for all rows at once, then each lane sums one vec4 of the values for all rows, so that
// keys and values are read once.
var<workgroup> sh_weight: array<vec4<f32>, ROWS * TEAMS>;
var<workgroup> sh_rescale: array<f32, ROWS>;
var<workgroup> sh_row: array<vec2<f32>, ROWS>;

fn attend(rows: Rows, here: KvSplit, number: u32, lane: Lane) {
    let id = lane.team * LANES + lane.index;
    load_queries(rows, lane);
    workgroupBarrier();
    // This lane accumulates one vec4 of the head, for rows 0 to 3 and 4 to 7.
    let part = id / DIM4;
    let dim4 = id % DIM4;
    var low = mat4x4<f32>();
    var high = mat4x4<f32>();
    // Largest score and sum of weights of row id / TEAMS; the row's first lane holds the sum.
    var row = vec2(MASKED, 0.0);
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
            low = rescaled(low, 0u);
            high = rescaled(high, 4u);
            for (var i = part; i * 4u < live; i += PARTS) {
                let values = values16(tile, live, i, rows.kv_head, dim4);
                low = weighted16(low, 0u, i, values);
                high = weighted16(high, 4u, i, values);
            }
        }
        workgroupBarrier();
    }
    if id < ROWS * TEAMS && id % TEAMS == 0u {
        sh_row[id / TEAMS] = row;
    }
    for (var other = PARTS - 1u; other > 0u; other--) {
        if part == other {
            keep16(low, 0u, dim4, other == PARTS - 1u);
            keep16(high, 4u, dim4, other == PARTS - 1u);
        }
        workgroupBarrier();
    }
    if PARTS == 1u {
        workgroupBarrier();
    }
    if part == 0u {
        write16(rows, 0u, number, dim4, low);
        write16(rows, 4u, number, dim4, high);
    }
    // The next block of rows reuses this memory.
    workgroupBarrier();
}

// A lane's sums of four rows, from row `first` on. The functions below are unrolled by hand for four rows: compilers do not unroll loops with bounds
// checks, and spill registers that a loop indexes.
fn rescaled(sums: mat4x4<f32>, first: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        rescaled4(sums[0], first),
        rescaled4(sums[1], first + 1u),
        rescaled4(sums[2], first + 2u),
        rescaled4(sums[3], first + 3u),
    );
}

fn rescaled4(sums: vec4<f32>, r: u32) -> vec4<f32> {
    if r >= ROWS {
        return sums;
    }
    return sums * sh_rescale[r];
}

// One vec4 of four values. Keys out of range have weight 0 and are clamped to the last one, which is finite.
fn values16(tile: u32, live: u32, i: u32, kv_head: u32, dim4: u32) -> mat4x4<f32> {
    let keys = vec4(tile) + min(vec4(i * 4u) + vec4(0u, 1u, 2u, 3u), vec4(live - 1u));
    return mat4x4<f32>(
        v4(cache_at(keys.x, kv_head) + dim4 * 4u),
        v4(cache_at(keys.y, kv_head) + dim4 * 4u),
        v4(cache_at(keys.z, kv_head) + dim4 * 4u),
        v4(cache_at(keys.w, kv_head) + dim4 * 4u),
    );
}

fn weighted16(sums: mat4x4<f32>, first: u32, i: u32, values: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        weighted4(sums[0], first, i, values),
        weighted4(sums[1], first + 1u, i, values),
        weighted4(sums[2], first + 2u, i, values),
        weighted4(sums[3], first + 3u, i, values),
    );
}

fn weighted4(sums: vec4<f32>, r: u32, i: u32, values: mat4x4<f32>) -> vec4<f32> {
    if r >= ROWS {
        return sums;
    }
    let w = sh_weight[r * TEAMS + i];
    var sum = sums;
    sum += w.x * values[0];
    sum += w.y * values[1];
    sum += w.z * values[2];
    sum += w.w * values[3];
    return sum;
}

fn keep16(sums: mat4x4<f32>, first: u32, dim4: u32, is_first: bool) {
    keep4(sums[0], first, dim4, is_first);
    keep4(sums[1], first + 1u, dim4, is_first);
    keep4(sums[2], first + 2u, dim4, is_first);
    keep4(sums[3], first + 3u, dim4, is_first);
}

fn keep4(sums: vec4<f32>, r: u32, dim4: u32, is_first: bool) {
    if r < ROWS {
        sh_q[r * DIM4 + dim4] = sums + select(sh_q[r * DIM4 + dim4], vec4(0.0), is_first);
    }
}

// Scores of a tile, masked where a row does not see the key: four keys per team of lanes, all rows at once.
fn score(tile: u32, live: u32, rows: Rows, lane: Lane) {
    let keys = vec4(lane.team * 4u) + vec4(0u, 1u, 2u, 3u);
    let read = vec4(tile) + min(keys, vec4(live - 1u));
    let at_0 = cache_at(read.x, rows.kv_head);
    let at_1 = cache_at(read.y, rows.kv_head);
    let at_2 = cache_at(read.z, rows.kv_head);
    let at_3 = cache_at(read.w, rows.kv_head);
    var low = mat4x4<f32>();
    var high = mat4x4<f32>();
    // Two vec4s at a time: both loads are issued before either is used.
    for (var dim4 = lane.index; dim4 < DIM4; dim4 += 2u * LANES) {
        let offset_0 = dim4 * 4u;
        let offset_1 = min(dim4 + LANES, DIM4 - 1u) * 4u;
        let first = mat4x4<f32>(k4(at_0 + offset_0), k4(at_1 + offset_0), k4(at_2 + offset_0), k4(at_3 + offset_0));
        let second = mat4x4<f32>(k4(at_0 + offset_1), k4(at_1 + offset_1), k4(at_2 + offset_1), k4(at_3 + offset_1));
        low = dots16(low, 0u, dim4, transpose(first));
        high = dots16(high, 4u, dim4, transpose(first));
        if dim4 + LANES < DIM4 {
            low = dots16(low, 0u, dim4 + LANES, transpose(second));
            high = dots16(high, 4u, dim4 + LANES, transpose(second));
        }
    }
    low = team_sum16(low, lane);
    if ROWS > 4u {
        high = team_sum16(high, lane);
    }
    // Lane r holds row r.
    let low4 = select(select(low[0], low[1], lane.index == 1u), select(low[2], low[3], lane.index == 3u), lane.index >= 2u);
    let high4 = select(select(high[0], high[1], lane.index == 5u), select(high[2], high[3], lane.index == 7u), lane.index >= 6u);
    if lane.index < ROWS {
        //#batch let run = row_step(token_of(rows.first));
        let position = vec4(run.position + token_of(rows.first + lane.index));
        let places = vec4(tile) + keys;
        let seen = (places <= position) & (position - places < vec4(p.window)) & (keys < vec4(live));
        let scores = select(low4, high4, lane.index >= 4u);
        sh_weight[lane.index * TEAMS + lane.team] = select(vec4(MASKED), scores, seen);
    }
}

// Dot products of four rows with four keys, by columns of the transposed keys: multiply-adds only.
fn dots16(sums: mat4x4<f32>, first: u32, dim4: u32, keys: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        dots4(sums[0], first, dim4, keys),
        dots4(sums[1], first + 1u, dim4, keys),
        dots4(sums[2], first + 2u, dim4, keys),
        dots4(sums[3], first + 3u, dim4, keys),
    );
}

fn dots4(sums: vec4<f32>, r: u32, dim4: u32, keys: mat4x4<f32>) -> vec4<f32> {
    if r >= ROWS {
        return sums;
    }
    let q = sh_q[r * DIM4 + dim4];
    var sum = sums;
    sum += q.x * keys[0];
    sum += q.y * keys[1];
    sum += q.z * keys[2];
    sum += q.w * keys[3];
    return sum;
}

// Converts scores to softmax weights, four per lane. Returns the factor for the row's earlier weights, and its new largest score.
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
        sh_weight[id] = select(exp(scores - vec4(most)), vec4(0.0), scores <= vec4(MASKED));
        if id % TEAMS == 0u {
            sh_rescale[row] = rescale;
        }
    }
    return vec2(rescale, most);
}

// Sum of the weights of a row; `first` is the index of its first vec4 of weights.
fn row_sum(first: u32) -> f32 {
    var sum4 = vec4(0.0);
    for (var i = 0u; i < TEAMS; i++) {
        sum4 += sh_weight[first + i];
    }
    return dot(sum4, vec4(1.0));
}

fn write16(rows: Rows, first: u32, number: u32, dim4: u32, sums: mat4x4<f32>) {
    write(rows, first, number, dim4, sums[0]);
    write(rows, first + 1u, number, dim4, sums[1]);
    write(rows, first + 2u, number, dim4, sums[2]);
    write(rows, first + 3u, number, dim4, sums[3]);
}

fn write(rows: Rows, r: u32, number: u32, dim4: u32, part: vec4<f32>) {
    if r >= ROWS || rows.first + r >= rows.end {
        return;
    }
    var sum = part;
    if PARTS > 1u {
        sum += sh_q[r * DIM4 + dim4];
    }
    write_dim4(rows.first + r, row_place(rows, r), number, dim4, sum, sh_row[r]);
}
