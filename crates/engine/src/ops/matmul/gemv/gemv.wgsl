// y[r] = sum over k of W[r, k] * x[k]     a team of lanes computes ROWS rows at a time, for which it reads x once
// Several tokens are computed separately: workgroups with the same rows of the weight for different tokens are neighbours.
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
//#slots //#use slot_lora

// Number of tokens; a constant, so that a single token has no overhead.
override TOKENS: u32 = 1u;
// One, two or four; an epilogue that takes two rows per output needs at least two.
override ROWS: u32 = 4u;

fn kernel(group: vec3<u32>, lane: Lane) {
    var first_turn = grid_index(group);
    if TOKENS > 1u {
        // A private variable is not uniform for the compiler, so the branch uses a local one.
        let token_index = first_turn % TOKENS;
        token = token_index;
        first_turn = first_turn / TOKENS;
        if PADDED > 0u && token_index >= run.count {
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
            let current = prefetched;
            prefetched = prefetch_next(starts, turn, piece, lane);
            sums += sums_of(current, starts, piece);
        }
        var totals = team_sum4(sums, lane);
        //#slots totals = with_slot_lora(totals, rows, lane);
        for (var i = lane.index; i < results(); i += lanes) {
            epilogue(first_of(turn, lane) + i, i, totals);
        }
        flush_outputs(turn, lane);
    }
}

// The first output of a team.
fn first_of(turn: u32, lane: Lane) -> u32 {
    return (turn * (WG / (LANES * SPLIT)) + lane.team) * results();
}

// The rows of a team's outputs. Rows past the end read the last one and are not written.
fn rows_of(turn: u32, lane: Lane) -> vec4<u32> {
    let first = first_of(turn, lane);
    return min(vec4(row_of(first, 0u), row_of(first, 1u), row_of(first, 2u), row_of(first, 3u)), vec4(p.rows - 1u));
}

fn starts_of(rows: vec4<u32>) -> vec4<u32> {
    return vec4(row_start(rows.x), row_start(rows.y), row_start(rows.z), row_start(rows.w));
}
