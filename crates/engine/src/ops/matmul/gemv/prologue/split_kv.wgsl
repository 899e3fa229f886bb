// x is the output of attention, combined from split-KV partials: the sums of all KV splits, then the largest score and the sum of weights
// of each.
//#use columns
//#use x_memory
override SPLITS: u32 = 2u;
// Keys per tile, whether the token's own key is a KV split, and the window: as attention divided the keys.
override PART_TILE: u32 = 64u;
override PART_OWN_KEY: u32 = 0u;
override PART_WINDOW: u32 = 512u;
override HEAD_VEC4S: u32 = 64u;
// Offset of the scores and weights, in vec4s.
override SPLIT_ROWS_AT: u32 = 0u;

fn prologue(first_turn: u32, lane: Lane) {
    let own = prefetch_up(lane);
    for (var turn = 0u; turn < X_VEC4S; turn += WG * 2u) {
        let i = turn + local_index(lane) * 2u;
        let one = vec4_column(clamp_index(i)) / 4u;
        let two = vec4_column(clamp_index(i + 1u)) / 4u;
        // Neighbouring vec4s belong to the same head.
        let both = combined_both(one / HEAD_VEC4S, 0u, HEAD_VEC4S, vec2(one, two) % HEAD_VEC4S);
        stage_two(i, both[0], both[1]);
    }
    stage_up(own, first_turn, lane);
    compute_lora_down(lane);
    stage_end(lane);
}

fn combined(four: u32) -> vec4<f32> {
    return combined_of(four / HEAD_VEC4S, 0u, HEAD_VEC4S, four % HEAD_VEC4S);
}

// One of the vec4s that each KV split of a head has from `at` on. There are no barriers, so all loads can be in flight at once.
fn combined_of(head: u32, at: u32, vec4s: u32, four: u32) -> vec4<f32> {
    return combined_both(head, at, vec4s, vec2(four))[0];
}

fn combined_both(head: u32, at: u32, vec4s: u32, two: vec2<u32>) -> mat2x4<f32> {
    let first = (token * (p.width / 4u / HEAD_VEC4S) + head) * SPLITS;
    // Cached keys that the token sees.
    let keys = min(run.position + token + 1u, PART_WINDOW) - PART_OWN_KEY;
    let share = (keys + SPLITS - PART_OWN_KEY - 1u) / (SPLITS - PART_OWN_KEY);
    let length = max((share + PART_TILE - 1u) / PART_TILE, 1u) * PART_TILE;
    var most = x[SPLIT_ROWS_AT + first].x;
    for (var s = 1u; s < SPLITS; s++) {
        let live = (s - PART_OWN_KEY) * length < keys;
        most = max(most, x[SPLIT_ROWS_AT + first + select(0u, s, live)].x);
    }
    var total = 0.0;
    var sums = mat2x4<f32>();
    for (var s = 0u; s < SPLITS; s++) {
        // A KV split without a key has no partial: the first one is read instead, with weight zero.
        let live = s == 0u || (s - PART_OWN_KEY) * length < keys;
        let kv_split = first + select(0u, s, live);
        let stats = x[SPLIT_ROWS_AT + kv_split];
        let start = at + kv_split * vec4s;
        let parts = mat2x4<f32>(x[start + two.x], x[start + two.y]);
        let factor = select(0.0, exp(stats.x - most), live);
        total += factor * stats.y;
        sums += factor * parts;
    }
    return sums * (1.0 / total);
}
