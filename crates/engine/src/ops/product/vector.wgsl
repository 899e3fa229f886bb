// y[r] = sum over k of W[r, k] * x[k]     a team of lanes makes ROWS rows at a time, which share what it reads of x
// Several tokens are computed apart: workgroups that take the same rows of the weight for different tokens are neighbours.
//#use params
//#use weights
//#use quant
//#use unit
//#use team
//#use taken
//#use begin
//#use held
//#use sums
//#use fetch
//#use finish
//#use low

// Tokens; a constant, so that one token costs nothing for there being others.
override TOKENS: u32 = 1u;
// One, two or four; an end that takes two rows for a result needs two at least.
override ROWS: u32 = 4u;

fn kernel(group: vec3<u32>, lane: Lane) {
    var first_turn = grid_index(group);
    if TOKENS > 1u {
        // What a private variable holds does not count as the same for all lanes.
        let mine = first_turn % TOKENS;
        token = mine;
        first_turn = first_turn / TOKENS;
        if mine >= run.count {
            return;
        }
    }
    if first_turn >= p.groups {
        low_beside(first_turn - p.groups, lane);
        return;
    }
    var asked_for = ask_first(first_turn, lane);
    var low_asked = ask_low(first_turn, lane);
    begin(first_turn, lane);
    let lanes = LANES * SPLIT;
    for (var turn = first_turn; turn < p.turns; turn += p.groups) {
        let rows = rows_of(turn, lane);
        let starts = starts_of(rows);
        var sums = low_sums(low_asked, rows, lane);
        low_asked = ask_low_next(low_asked, turn, lane);
        for (var piece = lane.index; piece < p.pieces; piece += lanes) {
            let here = asked_for;
            asked_for = ask_next(starts, turn, piece, lane);
            sums += sums_of(here, starts, piece);
        }
        let made = team_sum4(sums, lane);
        for (var i = lane.index; i < results(); i += lanes) {
            finish(first_of(turn, lane) + i, i, made);
        }
        give_all(turn, lane);
    }
}

// The first result of a team.
fn first_of(turn: u32, lane: Lane) -> u32 {
    return (turn * (WG / (LANES * SPLIT)) + lane.team) * results();
}

// The rows it is made of. Those past the end are read as the last one and not written.
fn rows_of(turn: u32, lane: Lane) -> vec4<u32> {
    let first = first_of(turn, lane);
    return min(vec4(row_of(first, 0u), row_of(first, 1u), row_of(first, 2u), row_of(first, 3u)), vec4(p.rows - 1u));
}

fn starts_of(rows: vec4<u32>) -> vec4<u32> {
    return vec4(row_start(rows.x), row_start(rows.y), row_start(rows.z), row_start(rows.w));
}
