// Emulated matrix units: each lane of a subgroup of 32 computes eight elements of a block, half a column. Slow, for testing kernels on
// adapters without such units. Operands are offsets into workgroup memory, which must not change until they are multiplied.
enable f16;

// Offset of 16 rows, stride between rows, stride between consecutive k (if stored k-major; else 0), in vec4s.
alias Left = vec3<u32>;
// Offset of 16 columns, stride between columns, stride between consecutive k (if stored k-major; else 0), in vec4s.
alias Right = vec3<u32>;
alias Block = mat2x4<f32>;

// The lane's index in the workgroup.
var<private> unit_lane: u32;

fn init_units(lane: u32) {
    unit_lane = lane;
}

fn left(at: u32) -> Left {
    return vec3(at, STRIDE, 0u);
}

fn left_transposed(at: u32, stride: u32) -> Left {
    return vec3(at, 0u, stride);
}

fn right(at: u32) -> Right {
    return vec3(at, STRIDE, 0u);
}

fn right_transposed(at: u32, stride: u32) -> Right {
    return vec3(at, 0u, stride);
}

// Matrix units load from multiples of 16 bytes only: elsewhere they give wrong results, so that these must, too.
fn is_aligned(a: Left, b: Right) -> bool {
    return ((a.x | a.y | a.z | b.x | b.y | b.z) & 1u) == 0u;
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    if !is_aligned(a, b) {
        return Block(vec4(1e30), vec4(1e30));
    }
    var added = sums;
    let column = unit_lane % 32u / 2u;
    let row = unit_lane % 2u * 8u;
    for (var k = 0u; k < 16u; k++) {
        let x = right_element(b, k, column);
        added[0] += x * vec4(left_element(a, row, k), left_element(a, row + 1u, k), left_element(a, row + 2u, k), left_element(a, row + 3u, k));
        added[1] += x * vec4(left_element(a, row + 4u, k), left_element(a, row + 5u, k), left_element(a, row + 6u, k), left_element(a, row + 7u, k));
    }
    return added;
}

fn left_element(a: Left, row: u32, k: u32) -> f32 {
    if a.z > 0u {
        return f32(sh_w[a.x + k * a.z + row / 4u][row % 4u]);
    }
    return f32(sh_w[a.x + row * a.y + k / 4u][k % 4u]);
}

fn right_element(b: Right, k: u32, column: u32) -> f32 {
    if b.z > 0u {
        return f32(sh_x[b.x + k * b.z + column / 4u][column % 4u]);
    }
    return f32(sh_x[b.x + column * b.y + k / 4u][k % 4u]);
}

// Stores a block column-major.
fn stage_block(sums: Block, at: u32) {
    let start = at + unit_lane % 32u * 8u;
    for (var i = 0u; i < 4u; i++) {
        sh_y[start + i] = sums[0][i];
        sh_y[start + 4u + i] = sums[1][i];
    }
}

// Reads a block that `stage_block` stored.
fn read_block(at: u32) -> Block {
    let start = at + unit_lane % 32u * 8u;
    return Block(
        vec4(sh_y[start], sh_y[start + 1u], sh_y[start + 2u], sh_y[start + 3u]),
        vec4(sh_y[start + 4u], sh_y[start + 5u], sh_y[start + 6u], sh_y[start + 7u]),
    );
}
