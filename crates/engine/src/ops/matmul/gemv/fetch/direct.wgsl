// Weights are loaded when they are used.
struct Fetched {
    nothing: u32,
}

fn prefetch_first(turn: u32, lane: Lane) -> Fetched {
    return Fetched();
}

fn prefetch_next(starts: vec4<u32>, turn: u32, piece: u32, lane: Lane) -> Fetched {
    return Fetched();
}

fn sums_of(fetched: Fetched, starts: vec4<u32>, piece: u32) -> vec4<f32> {
    return sums_at(starts + vec4(piece_offset(piece)), piece) * piece_weight(piece);
}
