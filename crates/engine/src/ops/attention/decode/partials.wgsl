// Partials of a token's head over its live KV splits.
@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;

// A vec4 over some KV splits: largest score, and sum of weights and weighted sum relative to it.
struct Found {
    largest: f32,
    weights: f32,
    sum: vec4<f32>,
}

// Combines every `step`-th KV split from `mine` on, with four loads in flight.
fn found(place: u32, dim4: u32, mine: u32, step: u32) -> Found {
    let live = live_kv_splits(place / HEADS);
    let first = place * SPLITS;
    let rows = p.tokens * HEADS * SPLITS * DIM4 + first;
    var found = Found(MASKED, 0.0, vec4(0.0));
    for (var s = mine; s < live; s += 4u * step) {
        let s4 = vec4(s) + vec4(0u, 1u, 2u, 3u) * step;
        let at = min(s4, vec4(live - 1u));
        let sum_0 = parts[(first + at.x) * DIM4 + dim4];
        let sum_1 = parts[(first + at.y) * DIM4 + dim4];
        let sum_2 = parts[(first + at.z) * DIM4 + dim4];
        let sum_3 = parts[(first + at.w) * DIM4 + dim4];
        let row_0 = parts[rows + at.x];
        let row_1 = parts[rows + at.y];
        let row_2 = parts[rows + at.z];
        let row_3 = parts[rows + at.w];
        let counts = s4 < vec4(live);
        let scores = select(vec4(MASKED), vec4(row_0.x, row_1.x, row_2.x, row_3.x), counts);
        let largest = max(max(found.largest, max(scores.x, scores.y)), max(scores.z, scores.w));
        let factor = select(vec4(0.0), exp(scores - vec4(largest)), counts);
        let before = exp(found.largest - largest);
        found.sum = found.sum * before + factor.x * sum_0 + factor.y * sum_1 + factor.z * sum_2 + factor.w * sum_3;
        found.weights = found.weights * before + dot(factor, vec4(row_0.y, row_1.y, row_2.y, row_3.y));
        found.largest = largest;
    }
    return found;
}
