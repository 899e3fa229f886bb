// h1 = s * (h + a / sqrt(mean(a^2) + eps) * w), which is a result, too; then h1 / sqrt(mean(h1^2) + eps) * next
@group(0) @binding(3) var<storage, read> h0: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> w_branch: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> s: array<f32>;
@group(0) @binding(8) var<storage, read> next: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> h1: array<vec4<f32>>;

var<private> rho_branch: f32;
var<private> rho: f32;

fn prologue(column: u32, lane: Lane) {
    let start = column * (p.width / 4u);
    var squares = 0.0;
    for (var i = lane.index; i < p.width / 4u; i += WG) {
        squares += dot(a[start + i], a[start + i]);
    }
    rho_branch = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
    squares = 0.0;
    for (var i = lane.index; i < p.width / 4u; i += WG) {
        let sum = summed(column, i);
        h1[start + i] = sum;
        squares += dot(sum, sum);
    }
    rho = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
}

// h1, recomputed rather than read back: another lane may have written it.
fn summed(column: u32, four: u32) -> vec4<f32> {
    let at = column * (p.width / 4u) + four;
    return (h0[at] + a[at] * rho_branch * w_branch[four]) * select(1.0, s[0], p.scaled != 0u);
}

fn prologue4(column: u32, four: u32) -> vec4<f32> {
    return summed(column, four) * rho * next[four];
}
