// x = h * w2 / sqrt(mean(h^2) + eps)
//#use write_x
@group(0) @binding(5) var<storage, read> w2: array<vec4<f32>>;

fn column_at(i: u32) -> Column {
    let stream = h[i];
    return Column(stream * w2[i], vec4(0.0), stream, vec4(0.0), vec4(dot(stream, stream), 0.0, 0.0, 0.0));
}

fn norms_of(squares: vec4<f32>, lane: Lane) -> Norms {
    let mean = team_sum4(squares, lane).x / f32(p.width);
    return Norms(inverseSqrt(mean + p.eps), 0.0, 1.0);
}

fn write_results(i: u32, column: Column, norms: Norms) {
    write_x(i, column.u * norms.m);
}
