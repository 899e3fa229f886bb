// h1 = s * (h + a * rho * w1),  rho = 1 / sqrt(mean(a^2) + eps);  then what is next. Every workgroup makes it for itself, the first one
// writes it down; h is bound as x
//#use columns
//#use shared
//#use next
//#use branch
//#use ahead
@group(0) @binding(6) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> w1: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read> s: array<f32>;
@group(0) @binding(9) var<storage, read_write> h1: array<vec4<f32>>;

// Where a column of this token lies.
fn row_quad(column: u32) -> u32 {
    return (token * p.width + column) / 4u;
}

// What a quad is made of.
struct Asked {
    branch: vec4<f32>,
    h: vec4<f32>,
    weight: vec4<f32>,
    next: vec4<f32>,
}

// Past the last quad that of another.
fn asked(i: u32) -> Asked {
    let column = quad_column(inside(i));
    return Asked(a[row_quad(column)], x4(token * p.x_columns, column), w1[column / 4u], next_weight(column));
}

// The same with what an adapter adds to the branch.
fn asked_late(i: u32) -> Asked {
    var all = asked(i);
    if BRANCH_LOW {
        all.branch += branch_more(row_quad(quad_column(inside(i))));
    }
    return all;
}

fn made(i: u32, made_from: Asked, rho: f32, scale: f32, writes: bool) -> vec4<f32> {
    let sum = (made_from.h + made_from.branch * rho * made_from.weight) * scale;
    if writes && i < QUADS {
        h1[row_quad(quad_column(i))] = sum;
    }
    return sum;
}

// Most lanes make two quads, neighbours: all that those are made of is on its way before anything is waited for.
fn begin(first_turn: u32, lane: Lane) {
    let one = number(lane) * 2u;
    let two = one + 1u;
    var first = asked(one);
    var second = asked(two);
    if BRANCH_LOW {
        let more = branch_more_two(row_quad(quad_column(inside(one))), row_quad(quad_column(inside(two))));
        first.branch += more[0];
        second.branch += more[1];
    }
    let ahead = ahead_of(number(lane));
    let scale = select(1.0, s[0], p.scaled != 0u);
    var squares = counted(one, dot(first.branch, first.branch) + dot(second.branch, second.branch));
    for (var turn = WG * 2u; turn < QUADS; turn += WG * 2u) {
        squares += branch_square(turn + one) + branch_square(turn + two);
    }
    let rho = inverseSqrt(group_sum(squares, lane) * PART + p.eps);
    let sum = made(one, first, rho, scale, first_turn == 0u);
    let other = made(two, second, rho, scale, first_turn == 0u);
    squares = counted(one, dot(sum, sum) + dot(other, other));
    for (var turn = WG * 2u; turn < QUADS; turn += WG * 2u) {
        squares += kept_square(turn + one, rho, scale, first_turn == 0u) + kept_square(turn + two, rho, scale, first_turn == 0u);
    }
    let norm = next_scale(squares, lane);
    hold_two(one, sum * norm * first.next, other * norm * second.next);
    for (var turn = WG * 2u; turn < QUADS; turn += WG * 2u) {
        hold_two(turn + one, normed(turn + one, norm), normed(turn + two, norm));
    }
    set_ahead(number(lane), ahead, norm * scale, rho);
    make_low(lane);
    hold_all(lane);
}

fn branch_square(i: u32) -> f32 {
    let branch = asked_late(i).branch;
    return counted(i, dot(branch, branch));
}

// The others wait in workgroup memory.
fn kept_square(i: u32, rho: f32, scale: f32, writes: bool) -> f32 {
    let quad = made(i, asked_late(i), rho, scale, writes);
    set_quad(i, quad);
    return counted(i, dot(quad, quad));
}

fn normed(i: u32, norm: f32) -> vec4<f32> {
    return get_quad(i) * norm * next_weight(quad_column(inside(i)));
}
