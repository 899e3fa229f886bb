// Dot products of a block's rows with four others at a time, and sums of others weighted by them. `sh_score` holds KEYS4 vec4s of weights for
// each of ROWS rows; a lane accumulates EACH of them, at most 16. Unrolled by hand: compilers do not unroll loops with bounds checks, and spill
// registers that a loop indexes.

// Transposed: four dot products become sixteen multiply-adds.
fn transposed(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        vec4(a.x, b.x, c.x, d.x),
        vec4(a.y, b.y, c.y, d.y),
        vec4(a.z, b.z, c.z, d.z),
        vec4(a.w, b.w, c.w, d.w),
    );
}

fn dots(sums: vec4<f32>, a: vec4<f32>, others: mat4x4<f32>) -> vec4<f32> {
    var sum = sums;
    sum += a.x * others[0];
    sum += a.y * others[1];
    sum += a.z * others[2];
    sum += a.w * others[3];
    return sum;
}

fn weighted16(sums: mat4x4<f32>, my_row: u32, i: u32, key: u32, values: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        weighted4(sums[0], my_row, i, key, values),
        weighted4(sums[1], my_row, i + 1u, key, values),
        weighted4(sums[2], my_row, i + 2u, key, values),
        weighted4(sums[3], my_row, i + 3u, key, values),
    );
}

fn weighted4(sums: vec4<f32>, my_row: u32, i: u32, key: u32, values: mat4x4<f32>) -> vec4<f32> {
    if i >= EACH {
        return sums;
    }
    let w = sh_score[min(my_row + i, ROWS - 1u) * KEYS4 + key / 4u];
    var sum = sums;
    sum += w.x * values[0];
    sum += w.y * values[1];
    sum += w.z * values[2];
    sum += w.w * values[3];
    return sum;
}
