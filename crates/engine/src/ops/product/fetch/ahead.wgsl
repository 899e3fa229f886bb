// What a lane reads of the weight next is on its way while x is made, and while it multiplies what it has: as words, since whoever takes them
// apart waits for them.
struct Words4 {
    x: Words,
    y: Words,
    z: Words,
    w: Words,
}

var<private> words: Words4;

fn words4_at(at: vec4<u32>) -> Words4 {
    var all: Words4;
    all.x = words_of(at.x);
    if ROWS > 1u {
        all.y = words_of(at.y);
    }
    if ROWS > 2u {
        all.z = words_of(at.z);
        all.w = words_of(at.w);
    }
    return all;
}

fn first_at(turn: u32, lane: Lane) -> vec4<u32> {
    return starts_of(rows_of(turn, lane)) + vec4(min(lane.index, p.pieces - 1u));
}

fn ask_first(turn: u32, lane: Lane) {
    words = words4_at(first_at(turn, lane));
}

fn sums_of(starts: vec4<u32>, turn: u32, piece: u32, lane: Lane) -> vec4<f32> {
    let now = words;
    let next = piece + LANES * SPLIT;
    // Behind the last piece comes the first one of the next turn; behind that nothing, and the last turn's is read again.
    words = words4_at(select(first_at(min(turn + p.groups, p.turns - 1u), lane), starts + vec4(next), next < p.pieces));
    let at = starts + vec4(piece);
    var rows: Rows;
    rows.x = unpacked(packed_of(now.x, at.x));
    if ROWS > 1u {
        rows.y = unpacked(packed_of(now.y, at.y));
    }
    if ROWS > 2u {
        rows.z = unpacked(packed_of(now.z, at.z));
        rows.w = unpacked(packed_of(now.w, at.w));
    }
    return sums_with(rows, piece);
}
