// Emulated int8 matrix units: each lane of a subgroup of 32 computes eight elements of a block, half a column. Slow, for testing
// kernels on adapters without such units. Operands are offsets into the storage buffer.
alias Left = u32;
alias Right = u32;

struct Block {
    upper: vec4<i32>,
    lower: vec4<i32>,
}

// The lane's index in the workgroup.
var<private> unit_lane: u32;

fn init_units(lane: u32) {
    unit_lane = lane;
}

fn left(at: u32) -> Left {
    return at;
}

fn right(at: u32) -> Right {
    return at;
}

fn multiply_add(a: Left, b: Right, sums: Block) -> Block {
    var added = sums;
    let column = unit_lane % 32u / 2u;
    let row = unit_lane % 2u * 8u;
    for (var k = 0u; k < 8u; k++) {
        let four = bitcast<u32>(x[b + column * 8u + k]);
        let at = a + row * 8u + k;
        added.upper += vec4(dot_of(at, four), dot_of(at + 8u, four), dot_of(at + 16u, four), dot_of(at + 24u, four));
        added.lower += vec4(dot_of(at + 32u, four), dot_of(at + 40u, four), dot_of(at + 48u, four), dot_of(at + 56u, four));
    }
    return added;
}

fn dot_of(at: u32, four: u32) -> i32 {
    return dot4I8Packed(bitcast<u32>(x[at]), four);
}

// Stores a block column-major.
fn stage_block(sums: Block, at: u32) {
    let start = at + unit_lane % 32u * 8u;
    for (var i = 0u; i < 4u; i++) {
        sh_y[start + i] = sums.upper[i];
        sh_y[start + 4u + i] = sums.lower[i];
    }
}
