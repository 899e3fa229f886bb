// P h, of the residual stream h, is computed as well and stored after A x.
override RESIDUAL_ROWS: u32 = 16u;
override RESIDUAL_VEC4S: u32 = 384u;
// As DOWN_EACH for A x.
override RESIDUAL_EACH: u32 = 4u;
@group(0) @binding(auto) var<storage, read> residual_h: array<vec4<f32>>;
@group(0) @binding(auto) var<storage, read> residual_p: array<LoraVec4>;

fn residual_down(row: u32, lane: Lane) {
    var sum = 0.0;
    for (var i = lane.part * LANES + lane.in_part; i < RESIDUAL_VEC4S; i += WG * RESIDUAL_EACH) {
        if RESIDUAL_EACH > 4u {
            sum += residual_four(row, i) + residual_four(row, i + WG * 4u);
        } else if RESIDUAL_EACH > 2u {
            sum += residual_four(row, i);
        } else if RESIDUAL_EACH > 1u {
            sum += residual_two(row, i);
        } else {
            sum += residual_at(row, i);
        }
    }
    sum = group_sum(sum, lane);
    if lane.part + lane.in_part == 0u && row < RESIDUAL_ROWS {
        y[p.y_width + p.lora_vec4s + row] = sum;
    }
}

fn residual_two(row: u32, i: u32) -> f32 {
    return residual_at(row, i) + residual_at(row, i + WG);
}

fn residual_four(row: u32, i: u32) -> f32 {
    return residual_two(row, i) + residual_two(row, i + WG * 2u);
}

fn residual_at(row: u32, i: u32) -> f32 {
    let four = min(i, RESIDUAL_VEC4S - 1u);
    let product = dot(lora_vec4(residual_p[min(row, RESIDUAL_ROWS - 1u) * RESIDUAL_VEC4S + four]), residual_h[four]);
    return select(0.0, product, i < RESIDUAL_VEC4S);
}
