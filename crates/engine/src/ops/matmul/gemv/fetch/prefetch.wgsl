// The next weights of a lane are prefetched while the prologue computes x and while the lane multiplies: as undecoded words, since decoding
// would wait for them.
struct Fetched {
    x: Words,
    y: Words,
    z: Words,
    w: Words,
}

fn fetched_at(at: vec4<u32>) -> Fetched {
    var fetched: Fetched;
    fetched.x = words_of(at.x);
    if ROWS > 1u {
        fetched.y = words_of(at.y);
    }
    if ROWS > 2u {
        fetched.z = words_of(at.z);
        fetched.w = words_of(at.w);
    }
    return fetched;
}

fn first_at(turn: u32, lane: Lane) -> vec4<u32> {
    return starts_of(rows_of(turn, lane)) + vec4(min(lane.index, p.pieces - 1u));
}

fn prefetch_first(turn: u32, lane: Lane) -> Fetched {
    return fetched_at(first_at(turn, lane));
}

// After the last piece comes the first one of the next turn; after the last turn it is loaded once more and not used.
fn prefetch_next(starts: vec4<u32>, turn: u32, piece: u32, lane: Lane) -> Fetched {
    let next = piece + LANES * SPLIT;
    return fetched_at(select(first_at(min(turn + p.groups, p.turns - 1u), lane), starts + vec4(next), next < p.pieces));
}

fn sums_of(fetched: Fetched, starts: vec4<u32>, piece: u32) -> vec4<f32> {
    let at = starts + vec4(piece);
    var rows: Rows;
    rows.x = unpacked(packed_of(fetched.x, at.x));
    if ROWS > 1u {
        rows.y = unpacked(packed_of(fetched.y, at.y));
    }
    if ROWS > 2u {
        rows.z = unpacked(packed_of(fetched.z, at.z));
        rows.w = unpacked(packed_of(fetched.w, at.w));
    }
    return sums_with(rows, piece);
}
