@group(0) @binding(5) var<storage, read> norm: array<f32>;
@group(0) @binding(6) var<storage, read> rope: array<vec2<f32>>;

fn turned_back(token: u32, i: u32, pair: vec2<f32>) -> vec2<f32> {
    let turn = rope[token * HALF + i];
    let back = vec2(pair.x * turn.x + pair.y * turn.y, pair.y * turn.x - pair.x * turn.y);
    return back * vec2(norm[i], norm[i + HALF]);
}
