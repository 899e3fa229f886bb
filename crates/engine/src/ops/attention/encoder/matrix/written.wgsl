// Emulated matrix units, for heads in blocks: each of 32 lanes computes eight elements of a block, half a row. Slow, for testing the kernel on
// adapters without matrix units.
enable f16;

// Offset of 16 rows, and whether they are weights in sh_aside.
alias Left = vec2<u32>;
// Offset of 16 columns.
alias Right = u32;
alias Block = mat2x4<f32>;

var<private> unit_lane: u32;
// Weights of up to eight blocks.
var<workgroup> sh_aside: array<vec4<f16>, 512>;

fn init_units(lane: u32) {
    unit_lane = lane;
}

fn left_heads(at: u32) -> Left {
    return vec2(at, 0u);
}

fn right_heads(at: u32) -> Right {
    return at;
}

// Copied: the kernel overwrites sh_w before it multiplies these.
fn left_weights(block: u32, number: u32) -> Left {
    for (var i = unit_lane; i < 64u; i += 32u) {
        sh_aside[number * 64u + i] = sh_w[i / 4u * WEIGHT_STRIDE + block * 4u + i % 4u];
    }
    return vec2(number * 64u, 1u);
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    var added = sums;
    let column = b + unit_lane % 2u * 32u;
    for (var k = 0u; k < 16u; k++) {
        let weight = left_number(a, unit_lane / 2u, k);
        added[0] += weight * numbers(column, k);
        added[1] += weight * numbers(column + 16u, k);
    }
    return added;
}

fn left_number(a: Left, row: u32, k: u32) -> f32 {
    let at = a.x + row * 4u + k / 4u;
    if a.y > 0u {
        return f32(sh_aside[at][k % 4u]);
    }
    return f32(x[at][k % 4u]);
}

// Element k of four columns.
fn numbers(at: u32, k: u32) -> vec4<f32> {
    let first = at + k / 4u;
    let i = k % 4u;
    return vec4<f32>(vec4(x[first][i], x[first + 4u][i], x[first + 8u][i], x[first + 12u][i]));
}

fn put_rows(sums: Block, at: u32, stride: u32) {
    let start = at + unit_lane / 2u * stride + unit_lane % 2u * 2u;
    sh_y[start] = sums[0];
    sh_y[start + 1u] = sums[1];
}

fn take_rows(at: u32, stride: u32) -> Block {
    let start = at + unit_lane / 2u * stride + unit_lane % 2u * 2u;
    return Block(sh_y[start], sh_y[start + 1u]);
}
