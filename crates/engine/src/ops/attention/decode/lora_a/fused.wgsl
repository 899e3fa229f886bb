// Multiplies each partial (one head, one KV split) with LoRA A's columns of that head. Attention is linear in its values, so the op that
// combines the partials combines these dot products too; they are stored after the rows' largest scores and sums.
//#use lora_weight
@group(0) @binding(auto) var<storage, read> lora_a: array<LoraVec4>;
// Rows of A, a multiple of four, and the stride between them in vec4s.
override LORA_ROWS: u32 = 16u;
override LORA_STRIDE: u32 = 512u;

// A lane's share of a row of A, or of a head: every LANES-th vec4.
struct LoraRow {
    a: LoraVec4,
    b: LoraVec4,
    c: LoraVec4,
    d: LoraVec4,
}

// A team processes every TEAMS-th row. The first two are prefetched before the keys are read.
struct LoraPrefetch {
    one: LoraRow,
    two: LoraRow,
}

// A row out of range is clamped to the last one.
fn lora_row(row: u32, head: u32, lane: Lane) -> LoraRow {
    let at = min(row, LORA_ROWS - 1u) * LORA_STRIDE + head * DIM4 + lane.index;
    var row_a: LoraRow;
    row_a.a = lora_a[at];
    row_a.b = lora_a[at + LANES];
    if PAIRS > 1u {
        row_a.c = lora_a[at + LANES * 2u];
        row_a.d = lora_a[at + LANES * 3u];
    }
    return row_a;
}

fn prefetch_lora(head: u32, lane: Lane) -> LoraPrefetch {
    var prefetched: LoraPrefetch;
    prefetched.one = lora_row(lane.team, head, lane);
    if LORA_ROWS > TEAMS {
        prefetched.two = lora_row(lane.team + TEAMS, head, lane);
    }
    return prefetched;
}

// Stores the reduced head in workgroup memory for the dot products with A.
fn keep_for_lora(dim4: u32, sum: vec4<f32>) {
    sh_q[dim4] = sum;
}

// Must be called after a barrier.
fn lora_dot_head(prefetched: LoraPrefetch, place: u32, number: u32, lane: Lane) {
    var head = HeadSlice(sh_q[lane.index], sh_q[lane.index + LANES], vec4(0.0), vec4(0.0));
    if PAIRS > 1u {
        head.c = sh_q[lane.index + LANES * 2u];
        head.d = sh_q[lane.index + LANES * 3u];
    }
    lora_dot_rows(prefetched, head, place, number, lane);
}

fn lora_dot_rows(prefetched: LoraPrefetch, head: HeadSlice, place: u32, number: u32, lane: Lane) {
    let at = (place * SPLITS + number) * LORA_ROWS;
    write_lora(at, lane.team, lora_dot(prefetched.one, head, lane), lane);
    if LORA_ROWS > TEAMS {
        write_lora(at, lane.team + TEAMS, lora_dot(prefetched.two, head, lane), lane);
    }
    for (var first = TEAMS * 2u; first < LORA_ROWS; first += TEAMS) {
        let row = lora_row(first + lane.team, place % HEADS, lane);
        write_lora(at, first + lane.team, lora_dot(row, head, lane), lane);
    }
}

fn lora_dot(row: LoraRow, head: HeadSlice, lane: Lane) -> f32 {
    var sum = dot(lora_vec4(row.a), head.a) + dot(lora_vec4(row.b), head.b);
    if PAIRS > 1u {
        sum += dot(lora_vec4(row.c), head.c) + dot(lora_vec4(row.d), head.d);
    }
    return team_sum(sum, lane);
}

fn write_lora(at: u32, row: u32, sum: f32, lane: Lane) {
    if lane.index == 0u && row < LORA_ROWS {
        o[rows_at() + p.tokens * HEADS * SPLITS + (at + row) / 4u][row % 4u] = sum;
    }
}

// The token's own key is a KV split by itself, so the split's sum is the token's value. Workgroups that store nothing process one head each
// and use the value before the KV cache rounds it.
fn lora_dot_own_value(block: u32, kv_head: u32, lane: Lane) {
    let head = kv_head * heads_of_group() + block;
    let prefetched = prefetch_lora(head, lane);
    let i = lane.index;
    var value = HeadSlice(raw4(VALUE, 0u, kv_head, i), raw4(VALUE, 0u, kv_head, i + LANES), vec4(0.0), vec4(0.0));
    if PAIRS > 1u {
        value.c = raw4(VALUE, 0u, kv_head, i + LANES * 2u);
        value.d = raw4(VALUE, 0u, kv_head, i + LANES * 3u);
    }
    let squares = dot(value.a, value.a) + dot(value.b, value.b) + dot(value.c, value.c) + dot(value.d, value.d);
    let scale = inverseSqrt(team_sum(squares, lane) / f32(WIDTH) + p.eps);
    let normed = HeadSlice(value.a * scale, value.b * scale, value.c * scale, value.d * scale);
    lora_dot_rows(prefetched, normed, head, 0u, lane);
}
