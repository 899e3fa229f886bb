// Norms heads; queries and keys have norm weights and 2-D RoPE, which rotates each half of a head by one axis of the position.
@group(0) @binding(6) var<storage, read> q_norm: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> k_norm: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read> rope: array<vec4<f32>>;

var<workgroup> sh_squares: array<f32, 256>;

fn transformed(numbers: vec4<f32>, token: u32, lane: u32, kind: u32) -> vec4<f32> {
    let dim4 = lane % DIM4;
    sh_squares[lane] = dot(numbers, numbers);
    workgroupBarrier();
    var squares = 0.0;
    for (var i = 0u; i < DIM4; i++) {
        squares += sh_squares[lane - dim4 + i];
    }
    let normed = numbers * inverseSqrt(squares / 64.0 + p.eps);
    if kind == VALUES {
        return normed;
    }
    var weighed = normed * k_norm[dim4];
    if kind == QUERIES {
        weighed = normed * q_norm[dim4];
    }
    sh_numbers[lane] = weighed;
    workgroupBarrier();
    // Elements 16 apart form a pair; two vec4s hold the cosines and sines of four pairs, interleaved.
    let other = sh_numbers[lane ^ 4u];
    let at = token * DIM4 + dim4 / 8u * 8u + dim4 % 4u * 2u;
    let cosines = vec4(rope[at].xz, rope[at + 1u].xz);
    let sines = vec4(rope[at].yw, rope[at + 1u].yw);
    return weighed * cosines + select(other, -other, dim4 % 8u < 4u) * sines;
}
