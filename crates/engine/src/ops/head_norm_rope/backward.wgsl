// g = inverse rotation of dy, times w; dx = rho * (g - x * rho^2 * mean(g * x)), rho = (mean(x^2) + eps)^(-1/2)
// One workgroup per head and token.
// Declared first: naga miscounts constants that follow a computed array size.
override WIDTH: u32 = 256u;
override HALF: u32 = 128u;
// Distance between the elements of a pair.
override PAIR_STRIDE: u32 = 128u;
override NORMED: u32 = 1u;
//#use reduce
//#use inverse_rotation

struct Params {
    eps: f32,
    heads: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let token = group.y;
    let start = (token * p.heads + group.x) * WIDTH;
    var squares = 0.0;
    var products = 0.0;
    for (var i = lane.index; i < HALF; i += WG) {
        let at = start + first_of_pair(i);
        let pair = vec2(x[at], x[at + PAIR_STRIDE]);
        squares += dot(pair, pair);
        products += dot(pair, rotated_back(token, i, vec2(dy[at], dy[at + PAIR_STRIDE])));
    }
    let rho = inverseSqrt(wg_sum(squares, lane) / f32(WIDTH) + p.eps);
    let along = wg_sum(products, lane) / f32(WIDTH) * rho * rho;
    for (var i = lane.index; i < HALF; i += WG) {
        let at = start + first_of_pair(i);
        let pair = vec2(x[at], x[at + PAIR_STRIDE]);
        let g = rotated_back(token, i, vec2(dy[at], dy[at + PAIR_STRIDE]));
        let result = select(g, rho * (g - pair * along), NORMED == 1u);
        dx[at] = result.x;
        dx[at + PAIR_STRIDE] = result.y;
    }
}

fn first_of_pair(i: u32) -> u32 {
    return i / PAIR_STRIDE * 2u * PAIR_STRIDE + i % PAIR_STRIDE;
}
