@group(0) @binding(5) var<storage, read> norm: array<f32>;
@group(0) @binding(6) var<storage, read> rope: array<vec2<f32>>;

fn rotated_back(token: u32, i: u32, pair: vec2<f32>) -> vec2<f32> {
    let rope_angle = rope[token * HALF + i];
    let back = vec2(pair.x * rope_angle.x + pair.y * rope_angle.y, pair.y * rope_angle.x - pair.x * rope_angle.y);
    if NORMED == 0u {
        return back;
    }
    let at = first_of_pair(i);
    return back * vec2(norm[at], norm[at + PAIR_STRIDE]);
}
