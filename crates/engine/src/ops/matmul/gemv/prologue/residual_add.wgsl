// h1 = s * (h + a * rho * w1),  rho = 1 / sqrt(mean(a^2) + eps), or s * (h + a) without a post-norm;  then the next norm. Every workgroup recomputes it, the first one stores
// it; h is bound as x
//#use columns
//#use x_memory
//#use next_norm
//#use branch_lora
//#use folded_down
override POST_NORM: u32 = 1u;
@group(0) @binding(6) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> w1: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read> s: array<f32>;
@group(0) @binding(9) var<storage, read_write> h1: array<vec4<f32>>;

// Index of the vec4 at a column of this token.
fn row_vec4(column: u32) -> u32 {
    return (token * p.width + column) / 4u;
}

// The operands of a vec4.
struct Loaded {
    branch: vec4<f32>,
    h: vec4<f32>,
    weight: vec4<f32>,
    next: vec4<f32>,
}

fn branch_weight(four: u32) -> vec4<f32> {
    if POST_NORM == 0u {
        return vec4(1.0);
    }
    return w1[four];
}

// Past the last vec4, those of the last one.
fn loaded(i: u32) -> Loaded {
    let column = vec4_column(clamp_index(i));
    return Loaded(a[row_vec4(column)], x4(token * p.x_columns, column), branch_weight(column / 4u), next_weight(column));
}

// With the LoRA up-projection of the branch.
fn loaded_with_lora(i: u32) -> Loaded {
    var all = loaded(i);
    if BRANCH_LORA {
        all.branch += branch_lora(row_vec4(vec4_column(clamp_index(i))));
    }
    return all;
}

fn residual_sum(i: u32, operands: Loaded, rho: f32, scale: f32, writes: bool) -> vec4<f32> {
    let sum = (operands.h + operands.branch * rho * operands.weight) * scale;
    if writes && i < X_VEC4S {
        h1[row_vec4(vec4_column(i))] = sum;
    }
    return sum;
}

// Each lane keeps its first two vec4s in registers: all loads are in flight before the first reduction.
fn prologue(first_turn: u32, lane: Lane) {
    let one = local_index(lane) * 2u;
    let two = one + 1u;
    var first = loaded(one);
    var second = loaded(two);
    if BRANCH_LORA {
        let lora = branch_lora_two(row_vec4(vec4_column(clamp_index(one))), row_vec4(vec4_column(clamp_index(two))));
        first.branch += lora[0];
        second.branch += lora[1];
    }
    let folded = folded_of(local_index(lane));
    let scale = select(1.0, s[0], p.scaled != 0u);
    var squares = 0.0;
    var rho = 1.0;
    if POST_NORM != 0u {
        squares = valid_or_zero(one, dot(first.branch, first.branch) + dot(second.branch, second.branch));
        for (var turn = WG * 2u; turn < X_VEC4S; turn += WG * 2u) {
            squares += branch_square(turn + one) + branch_square(turn + two);
        }
        rho = inverseSqrt(group_sum(squares, lane) * PART + p.eps);
    }
    let sum = residual_sum(one, first, rho, scale, first_turn == 0u);
    let other = residual_sum(two, second, rho, scale, first_turn == 0u);
    squares = valid_or_zero(one, dot(sum, sum) + dot(other, other));
    for (var turn = WG * 2u; turn < X_VEC4S; turn += WG * 2u) {
        squares += staged_square(turn + one, rho, scale, first_turn == 0u) + staged_square(turn + two, rho, scale, first_turn == 0u);
    }
    let norm = next_scale(squares, lane);
    stage_two(one, sum * norm * first.next, other * norm * second.next);
    for (var turn = WG * 2u; turn < X_VEC4S; turn += WG * 2u) {
        stage_two(turn + one, normed(turn + one, norm), normed(turn + two, norm));
    }
    set_folded(local_index(lane), folded, norm * scale, rho);
    compute_lora_down(lane);
    stage_end(lane);
}

fn branch_square(i: u32) -> f32 {
    let branch = loaded_with_lora(i).branch;
    return valid_or_zero(i, dot(branch, branch));
}

// The other vec4s are kept in workgroup memory.
fn staged_square(i: u32, rho: f32, scale: f32, writes: bool) -> f32 {
    let four = residual_sum(i, loaded_with_lora(i), rho, scale, writes);
    set_vec4(i, four);
    return valid_or_zero(i, dot(four, four));
}

fn normed(i: u32, norm: f32) -> vec4<f32> {
    return get_vec4(i) * norm * next_weight(vec4_column(clamp_index(i)));
}
