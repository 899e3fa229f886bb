// Nothing is asked for before x is made.
struct LowAsked {
    nothing: u32,
}

fn ask_low(turn: u32, lane: Lane) -> LowAsked {
    return LowAsked();
}

fn ask_low_next(asked: LowAsked, turn: u32, lane: Lane) -> LowAsked {
    return asked;
}
