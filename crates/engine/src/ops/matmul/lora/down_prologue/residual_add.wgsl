// h1 = s * (h + a * n * w1),  n = 1 / sqrt(mean(a^2) + eps), or s * (h + a) without a post-norm;  then the next norm. The mean of h1^2 follows from the means of h^2, (a w1)^2 and
// h a w1.
//#use branch_lora
//#use down_next_norm
//#use write_x
override POST_NORM: u32 = 1u;
@group(0) @binding(5) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> w1: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> s: array<f32>;
@group(0) @binding(8) var<storage, read_write> h1: array<vec4<f32>>;

fn column_at(i: u32) -> Column {
    let stream = h[i];
    var weight = vec4(1.0);
    if POST_NORM != 0u {
        weight = w1[i];
    }
    let next = next_weight(i);
    var branch = a[i];
    if BRANCH_LORA {
        branch += branch_lora(i);
    }
    let weighted = branch * weight;
    let squares = vec4(dot(branch, branch), dot(stream, stream), dot(stream, weighted), dot(weighted, weighted));
    return Column(stream * next, weighted * next, stream, weighted, squares);
}

fn norms_of(squares: vec4<f32>, lane: Lane) -> Norms {
    let means = team_sum4(squares, lane) / f32(p.width);
    var n = 1.0;
    if POST_NORM != 0u {
        n = inverseSqrt(means.x + p.eps);
    }
    let scale = select(1.0, s[0], p.scaled != 0u);
    let mean_square = max(means.y + 2.0 * n * means.z + n * n * means.w, 0.0) * scale * scale;
    return Norms(scale * next_norm(mean_square), n, scale);
}

fn write_results(i: u32, column: Column, norms: Norms) {
    h1[i] = (column.stream + column.addend * norms.n) * norms.scale;
    write_x(i, (column.u + column.v * norms.n) * norms.m);
}
