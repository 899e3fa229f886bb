// A lane takes quads of four rows; the team's sum takes them in. The first of them are on their way while x is made, and those of the next
// turn while this one multiplies.
struct LowAsked {
    x: LowQuad,
    y: LowQuad,
    z: LowQuad,
    w: LowQuad,
}

fn low_at(rows: vec4<u32>, i: u32) -> LowAsked {
    let at = (rows + vec4(p.first_row)) * p.low_stride + vec4(i);
    var asked: LowAsked;
    asked.x = low_b[at.x];
    if ROWS > 1u {
        asked.y = low_b[at.y];
    }
    if ROWS > 2u {
        asked.z = low_b[at.z];
        asked.w = low_b[at.w];
    }
    return asked;
}

// Lanes past the inner size read its end.
fn ask_low(turn: u32, lane: Lane) -> LowAsked {
    return low_at(rows_of(turn, lane), min(lane.index, p.low_quads - 1u));
}

fn ask_low_next(asked: LowAsked, turn: u32, lane: Lane) -> LowAsked {
    if turn + p.groups >= p.turns {
        return asked;
    }
    return ask_low(turn + p.groups, lane);
}

fn low_times(asked: LowAsked, i: u32) -> vec4<f32> {
    let z = low_z(i);
    var sums = vec4(dot(low_quad(asked.x), z), 0.0, 0.0, 0.0);
    if ROWS > 1u {
        sums.y = dot(low_quad(asked.y), z);
    }
    if ROWS > 2u {
        sums.z = dot(low_quad(asked.z), z);
        sums.w = dot(low_quad(asked.w), z);
    }
    return sums;
}

fn low_sums(asked: LowAsked, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    var sums = vec4(0.0);
    if lane.index < p.low_quads {
        sums = low_times(asked, lane.index);
    }
    for (var i = lane.index + LANES * SPLIT; i < p.low_quads; i += LANES * SPLIT) {
        sums += low_times(low_at(rows, i), i);
    }
    return sums;
}

fn low_beside(row: u32, lane: Lane) {}
