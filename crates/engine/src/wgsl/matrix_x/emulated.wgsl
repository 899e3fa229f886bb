// Blocks of x in global memory: 16 of k by 16 columns, with `stride` vec4s between columns.
// Offset and stride, in vec4s.
alias XBlock = vec2<u32>;

fn x_block(at: u32, stride: u32) -> XBlock {
    return vec2(at, stride);
}

// Each lane computes half a column, as `multiply_add` does.
fn multiply_add_x(a: Left, b: XBlock, sums: Block) -> Block {
    // Matrix units load from multiples of 16 bytes only.
    if ((a.x | a.y | b.x | b.y) & 1u) != 0u {
        return Block(vec4(1e30), vec4(1e30));
    }
    var added = sums;
    let column = b.x + unit_lane % 32u / 2u * b.y;
    let row = unit_lane % 2u * 8u;
    for (var k = 0u; k < 16u; k++) {
        let value = f32(x[column + k / 4u][k % 4u]);
        added[0] += value * vec4(left_element(a, row, k), left_element(a, row + 1u, k), left_element(a, row + 2u, k), left_element(a, row + 3u, k));
        added[1] += value * vec4(left_element(a, row + 4u, k), left_element(a, row + 5u, k), left_element(a, row + 6u, k), left_element(a, row + 7u, k));
    }
    return added;
}

// Lanes read what others have written: not every software adapter runs the lanes of a subgroup together.
fn subgroup_barrier() {
    workgroupBarrier();
}
