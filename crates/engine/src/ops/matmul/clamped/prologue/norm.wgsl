// h / sqrt(mean(h^2) + eps) * next
@group(0) @binding(3) var<storage, read> h0: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> next: array<vec4<f32>>;

var<private> rho: f32;

fn prologue(column: u32, lane: Lane) {
    var squares = 0.0;
    for (var i = lane.index; i < p.width / 4u; i += WG) {
        let h = h0[column * (p.width / 4u) + i];
        squares += dot(h, h);
    }
    rho = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
}

fn prologue4(column: u32, four: u32) -> vec4<f32> {
    return h0[column * (p.width / 4u) + four] * rho * next[four];
}
