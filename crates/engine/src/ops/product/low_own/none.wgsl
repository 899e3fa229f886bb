// Nothing is added to rows but what has its own parts for it.
struct LowAsked {
    nothing: u32,
}

fn ask_low(turn: u32, lane: Lane) -> LowAsked {
    return LowAsked();
}

fn ask_low_next(asked: LowAsked, turn: u32, lane: Lane) -> LowAsked {
    return asked;
}

fn low_sums(asked: LowAsked, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    return vec4(0.0);
}

fn ask_own(lane: Lane) -> vec4<f32> {
    return vec4(0.0);
}

fn keep_own(first: vec4<f32>, first_turn: u32, lane: Lane) {}

fn own_rows() -> u32 {
    return 0u;
}
