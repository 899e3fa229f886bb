// y[r] += sum over i of B[r, i] * z[i], where attention has left z = A x in parts, as it has left x. B is turned. What comes after y then adds
// nothing: zeros lie where z would.
//#use own_b
// The inner size, a multiple of four, its quads of all heads, and where those start.
override OWN_RANK: u32 = 16u;
override OWN_PARTS: u32 = 32u;
override OWN_AT: u32 = 0u;
// Quads of a row of B in memory.
override OWN_STRIDE: u32 = 384u;

var<workgroup> sh_own: array<vec4<f32>, OWN_PARTS>;

struct LowAsked {
    x: OwnQuad,
    y: OwnQuad,
    z: OwnQuad,
    w: OwnQuad,
}

// Combined over KV splits, head by head.
fn own_part(i: u32) -> vec4<f32> {
    return combined_of(i / (OWN_RANK / 4u), OWN_AT, OWN_RANK / 4u, i % (OWN_RANK / 4u));
}

// On its way before x is held.
fn ask_own(lane: Lane) -> vec4<f32> {
    var part = vec4(0.0);
    if number(lane) < OWN_PARTS {
        part = own_part(number(lane));
    }
    return part;
}

// In front of a barrier.
fn keep_own(first: vec4<f32>, first_turn: u32, lane: Lane) {
    if number(lane) < OWN_PARTS {
        sh_own[number(lane)] = first;
    }
    for (var i = number(lane) + WG; i < OWN_PARTS; i += WG) {
        sh_own[i] = own_part(i);
    }
    for (var i = number(lane); i < OWN_RANK; i += WG) {
        if first_turn == 0u {
            y[p.y_width + i] = 0.0;
        }
    }
}

fn own_z(i: u32) -> f32 {
    var sum = vec4(0.0);
    for (var at = i / 4u; at < OWN_PARTS; at += OWN_RANK / 4u) {
        sum += sh_own[at];
    }
    return sum[i % 4u];
}

fn low_at(rows: vec4<u32>, i: u32) -> LowAsked {
    let at = vec4(i * OWN_STRIDE) + rows / 4u;
    var asked: LowAsked;
    asked.x = own_b[at.x];
    if ROWS > 1u {
        asked.y = own_b[at.y];
    }
    if ROWS > 2u {
        asked.z = own_b[at.z];
        asked.w = own_b[at.w];
    }
    return asked;
}

// Lanes past the inner size read its end.
fn ask_low(turn: u32, lane: Lane) -> LowAsked {
    return low_at(rows_of(turn, lane), min(lane.index, OWN_RANK - 1u));
}

fn ask_low_next(asked: LowAsked, turn: u32, lane: Lane) -> LowAsked {
    if turn + p.groups >= p.turns {
        return asked;
    }
    return ask_low(turn + p.groups, lane);
}

fn low_times(asked: LowAsked, rows: vec4<u32>, i: u32) -> vec4<f32> {
    let z = own_z(i);
    var sums = vec4(own_quad(asked.x)[rows.x % 4u] * z, 0.0, 0.0, 0.0);
    if ROWS > 1u {
        sums.y = own_quad(asked.y)[rows.y % 4u] * z;
    }
    if ROWS > 2u {
        sums.z = own_quad(asked.z)[rows.z % 4u] * z;
        sums.w = own_quad(asked.w)[rows.w % 4u] * z;
    }
    return sums;
}

fn low_sums(asked: LowAsked, rows: vec4<u32>, lane: Lane) -> vec4<f32> {
    var sums = vec4(0.0);
    if lane.index < OWN_RANK {
        sums = low_times(asked, rows, lane.index);
    }
    for (var i = lane.index + LANES * SPLIT; i < OWN_RANK; i += LANES * SPLIT) {
        sums += low_times(low_at(rows, i), rows, i);
    }
    return sums;
}

// How many rows of A are met elsewhere.
fn own_rows() -> u32 {
    return OWN_RANK;
}
