// y[r] = sum over k of W[r, k] * x[k]     a team of lanes makes ROWS rows at a time, which share what it reads of x
// Several tokens are computed apart: workgroups that take the same rows of the weight for different tokens are neighbours.
//#use params
//#use weights
//#use quant
//#use unit
//#use team
//#use rows
//#use prologue
//#use activation
//#use sums
//#use fetch
//#use epilogue
//#use lora

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
        if PADDED > 0u && mine >= run.count {
            return;
        }
    }
    if first_turn >= p.groups {
        lora_down_rows(first_turn - p.groups, lane);
        return;
    }
    var prefetched = prefetch_first(first_turn, lane);
    var lora_loaded = prefetch_lora(first_turn, lane);
    prologue(first_turn, lane);
    let lanes = LANES * SPLIT;
    for (var turn = first_turn; turn < p.turns; turn += p.groups) {
        let rows = rows_of(turn, lane);
        let starts = starts_of(rows);
        var sums = lora_sums(lora_loaded, rows, lane);
        lora_loaded = prefetch_lora_next(lora_loaded, turn, lane);
        for (var piece = lane.index; piece < p.pieces; piece += lanes) {
            let here = prefetched;
            prefetched = prefetch_next(starts, turn, piece, lane);
            sums += sums_of(here, starts, piece);
        }
        let made = team_sum4(sums, lane);
        for (var i = lane.index; i < results(); i += lanes) {
            epilogue(first_of(turn, lane) + i, i, made);
        }
        flush_outputs(turn, lane);
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
