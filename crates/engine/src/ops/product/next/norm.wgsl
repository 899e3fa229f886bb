// What lies in x is normed; each lane takes what it wrote itself.
@group(0) @binding(5) var<storage, read> w2: array<vec4<f32>>;

fn next_norm(squares: f32, lane: Lane) {
    let rho = inverseSqrt(group_sum(squares, lane) / f32(p.width) + p.eps);
    for (var i = number(lane); i < QUADS; i += WG) {
        set_quad(i, get_quad(i) * rho * w2[quad_column(i) / 4u]);
    }
}
