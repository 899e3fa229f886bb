// h1 = s * (h + a * rho * w1),  rho = 1 / sqrt(mean(a^2) + eps);  then what is next. Every workgroup makes it for itself, the first one
// writes it down; h is bound as x
//#use columns
//#use shared
//#use next
//#use branch
@group(0) @binding(6) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> w1: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read> s: array<f32>;
@group(0) @binding(9) var<storage, read_write> h1: array<vec4<f32>>;

// Where a column of this token lies.
fn row_quad(column: u32) -> u32 {
    return (token * p.width + column) / 4u;
}

fn begin(first_turn: u32, lane: Lane) {
    var squares = 0.0;
    for (var i = number(lane); i < QUADS; i += WG) {
        let branch = branch_at(row_quad(quad_column(i)));
        set_quad(i, branch);
        squares += dot(branch, branch);
    }
    let rho = inverseSqrt(group_sum(squares, lane) / f32(p.width) + p.eps);
    let scale = select(1.0, s[0], p.scaled != 0u);
    squares = 0.0;
    for (var i = number(lane); i < QUADS; i += WG) {
        let column = quad_column(i);
        let sum = (x4(token * p.x_columns, column) + get_quad(i) * rho * w1[column / 4u]) * scale;
        if first_turn == 0u {
            h1[row_quad(column)] = sum;
        }
        set_quad(i, sum);
        squares += dot(sum, sum);
    }
    next_norm(squares, lane);
    make_low(lane);
    hold(lane);
}
