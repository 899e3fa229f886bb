// y[t, r] = sum over k of W[r, k] * x[t, k]     for 2 to 8 tokens, or groups of 8: bit-identical to matmul/gemv, but a
// weight is read and decoded once for a group
//#use params
//#use weights
//#use quant
//#use unit
//#use team
//#use activation
//#use sums
//#use epilogue
//#slots //#use slot_lora

// Tokens of a group, and groups.
override TOKENS: u32 = 2u;
override TOKEN_GROUPS: u32 = 1u;
// Rows of the weight at a time, as in matmul/gemv.
override ROWS: u32 = 2u;

// The first token of this group.
var<private> first_token: u32;

fn kernel(group: vec3<u32>, lane: Lane) {
    let lanes = LANES * SPLIT;
    // Workgroups that read the same rows of the weight are neighbours.
    let turn = grid_index(group) / TOKEN_GROUPS;
    let start = grid_index(group) % TOKEN_GROUPS * TOKENS;
    if TOKEN_GROUPS > 1u && start >= run.count {
        return;
    }
    first_token = start;
    let at = rows_of(turn, lane);
    // Unrolled: an array indexed in a loop would not stay in registers.
    var s0 = vec4(0.0);
    var s1 = vec4(0.0);
    var s2 = vec4(0.0);
    var s3 = vec4(0.0);
    var s4 = vec4(0.0);
    var s5 = vec4(0.0);
    var s6 = vec4(0.0);
    var s7 = vec4(0.0);
    for (var piece = lane.index; piece < p.pieces; piece += lanes) {
        let rows = rows_at(at * p.row_pieces + vec4(piece));
        s0 += token_sums(0u, rows, piece);
        if TOKENS > 1u {
            s1 += token_sums(1u, rows, piece);
        }
        if TOKENS > 2u {
            s2 += token_sums(2u, rows, piece);
        }
        if TOKENS > 3u {
            s3 += token_sums(3u, rows, piece);
        }
        // Graphs are built for the largest number of tokens; passes often have fewer.
        if TOKENS > 4u && (PADDED == 0u || run.count > start + 4u) {
            s4 += token_sums(4u, rows, piece);
            if TOKENS > 5u {
                s5 += token_sums(5u, rows, piece);
            }
            if TOKENS > 6u {
                s6 += token_sums(6u, rows, piece);
            }
            if TOKENS > 7u {
                s7 += token_sums(7u, rows, piece);
            }
        }
    }
    finish_token(0u, s0, turn, lane);
    if TOKENS > 1u {
        finish_token(1u, s1, turn, lane);
    }
    if TOKENS > 2u {
        finish_token(2u, s2, turn, lane);
    }
    if TOKENS > 3u {
        finish_token(3u, s3, turn, lane);
    }
    if TOKENS > 4u {
        finish_token(4u, s4, turn, lane);
    }
    if TOKENS > 5u {
        finish_token(5u, s5, turn, lane);
    }
    if TOKENS > 6u {
        finish_token(6u, s6, turn, lane);
    }
    if TOKENS > 7u {
        finish_token(7u, s7, turn, lane);
    }
}

fn token_sums(which: u32, rows: Rows, piece: u32) -> vec4<f32> {
    token = first_token + which;
    return sums_with(rows, piece);
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

fn finish_token(which: u32, sums: vec4<f32>, turn: u32, lane: Lane) {
    token = first_token + which;
    var all = team_sum4(sums, lane);
    //#slots all = with_slot_lora(all, rows_of(turn, lane), lane);
    for (var i = lane.index; i < results(); i += LANES * SPLIT) {
        epilogue(first_of(turn, lane) + i, i, all);
    }
    flush_outputs(turn, lane);
}
