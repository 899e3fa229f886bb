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
//#use finish
//#use low

// Tokens; a constant, so that one token costs nothing for there being others.
override TOKENS: u32 = 1u;
// One, two or four; an end that takes two rows for a result needs two at least.
override ROWS: u32 = 4u;

@group(0) @binding(4) var<storage, read_write> y: array<f32>;

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
    begin(first_turn, lane);
    let lanes = LANES * SPLIT;
    for (var turn = first_turn; turn < p.turns; turn += p.groups) {
        let first = (turn * (WG / lanes) + lane.team) * results();
        // Rows behind the end are read as the last one and not written.
        let rows = min(vec4(row_of(first, 0u), row_of(first, 1u), row_of(first, 2u), row_of(first, 3u)), vec4(p.rows - 1u));
        let starts = vec4(row_start(rows.x), row_start(rows.y), row_start(rows.z), row_start(rows.w));
        var sums = low_sums(rows, lane);
        for (var piece = lane.index; piece < p.pieces; piece += lanes) {
            sums += sums_of(starts, piece);
        }
        let made = team_sum4(sums, lane);
        for (var i = lane.index; i < results(); i += lanes) {
            finish(first + i, i, made);
        }
    }
}

fn sums_of(starts: vec4<u32>, piece: u32) -> vec4<f32> {
    return sums_at(starts + vec4(place_of(piece)), piece) * share_of(piece);
}
