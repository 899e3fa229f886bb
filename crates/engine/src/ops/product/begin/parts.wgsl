// x is what attention made of its heads, which it left in parts: sums over KV splits and, after all of those, the largest
// score and the sum of weights of each.
//#use columns
//#use shared
override SPLITS: u32 = 2u;
// Keys of a tile, whether the token's own key is a KV split, and how many keys it sees: as attention dealt them out.
override PART_TILE: u32 = 64u;
override PART_APART: u32 = 0u;
override PART_WINDOW: u32 = 512u;
override HEAD_QUADS: u32 = 64u;
// Where what is known of KV splits starts.
override ROWS_AT: u32 = 0u;

fn begin(first_turn: u32, lane: Lane) {
    let own = ask_own(lane);
    for (var turn = 0u; turn < QUADS; turn += WG * 2u) {
        let i = turn + number(lane) * 2u;
        let one = quad_column(inside(i)) / 4u;
        let two = quad_column(inside(i + 1u)) / 4u;
        // Neighbours are of one head.
        let both = combined_both(one / HEAD_QUADS, 0u, HEAD_QUADS, vec2(one, two) % HEAD_QUADS);
        hold_two(i, both[0], both[1]);
    }
    keep_own(own, first_turn, lane);
    make_low(lane);
    hold_all(lane);
}

fn combined(quad: u32) -> vec4<f32> {
    return combined_of(quad / HEAD_QUADS, 0u, HEAD_QUADS, quad % HEAD_QUADS);
}

// One of so many quads that each KV split of a head has from some place on. Nothing here waits for anything but memory, and all of that can
// be prefetched at once.
fn combined_of(head: u32, at: u32, quads: u32, quad: u32) -> vec4<f32> {
    return combined_both(head, at, quads, vec2(quad))[0];
}

fn combined_both(head: u32, at: u32, quads: u32, two: vec2<u32>) -> mat2x4<f32> {
    let first = (token * (p.width / 4u / HEAD_QUADS) + head) * SPLITS;
    // Of the caches, those that the token sees.
    let keys = min(run.position + token + 1u, PART_WINDOW) - PART_APART;
    let share = (keys + SPLITS - PART_APART - 1u) / (SPLITS - PART_APART);
    let length = max((share + PART_TILE - 1u) / PART_TILE, 1u) * PART_TILE;
    var most = x[ROWS_AT + first].x;
    for (var s = 1u; s < SPLITS; s++) {
        let live = (s - PART_APART) * length < keys;
        most = max(most, x[ROWS_AT + first + select(0u, s, live)].x);
    }
    var total = 0.0;
    var sums = mat2x4<f32>();
    for (var s = 0u; s < SPLITS; s++) {
        // A KV split without a key has left nothing: the first one, which has some, is read in its place.
        let live = s == 0u || (s - PART_APART) * length < keys;
        let kv_split = first + select(0u, s, live);
        let about = x[ROWS_AT + kv_split];
        let start = at + kv_split * quads;
        let parts = mat2x4<f32>(x[start + two.x], x[start + two.y]);
        let factor = select(0.0, exp(about.x - most), live);
        total += factor * about.y;
        sums += factor * parts;
    }
    return sums * (1.0 / total);
}
