// The elements of a column that a unit of weights is multiplied with, and their dot product. Unrolled by hand: not every compiler unrolls
// loops with bounds checks, and arrays indexed in a loop are spilled from registers.
fn unit_dot(a: array<vec4<f32>, 8>, b: array<vec4<f32>, 8>) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3])
        + dot(a[4], b[4]) + dot(a[5], b[5]) + dot(a[6], b[6]) + dot(a[7], b[7]);
}

// The elements of a column for a unit, and their sums over pairs of groups, which are multiplied with the offsets.
struct Column {
    x: array<vec4<f32>, 8>,
    sums: vec4<f32>,
}

fn column_of(x: array<vec4<f32>, 8>) -> Column {
    let a = x[0] + x[1];
    let b = x[2] + x[3];
    let c = x[4] + x[5];
    let d = x[6] + x[7];
    let one = vec4(1.0);
    return Column(x, vec4(dot(a, one), dot(b, one), dot(c, one), dot(d, one)));
}

// Scales and offsets are applied once per pair of groups rather than once per weight.
fn unit_times(u: Unit, c: Column) -> f32 {
    let sums = vec4(
        dot(u.levels[0], c.x[0]) + dot(u.levels[1], c.x[1]), dot(u.levels[2], c.x[2]) + dot(u.levels[3], c.x[3]),
        dot(u.levels[4], c.x[4]) + dot(u.levels[5], c.x[5]), dot(u.levels[6], c.x[6]) + dot(u.levels[7], c.x[7]),
    );
    return dot(u.scale, sums) - dot(u.offset, c.sums);
}
