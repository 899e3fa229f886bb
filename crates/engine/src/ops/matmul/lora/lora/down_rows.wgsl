// A x is computed by additional workgroups, next to those of W x, and stored after it.
//#use lora_weight
//#use residual_down
//#use down_x
//#use lora_up
// Pieces of x that a lane prefetches at once, a power of two up to eight: every loop iteration waits for memory.
override DOWN_EACH: u32 = 4u;
@group(0) @binding(auto) var<storage, read> lora_a: array<LoraVec4>;

fn compute_lora_down(lane: Lane) {}

fn lora_down_rows(index: u32, lane: Lane) {
    let row = index + up_rows();
    if row >= p.lora_vec4s {
        residual_down(row - p.lora_vec4s, lane);
        return;
    }
    var sum = 0.0;
    for (var i = lane.part * LANES + lane.in_part; i < down_pieces(); i += WG * DOWN_EACH) {
        if DOWN_EACH > 4u {
            sum += down_four(row, i) + down_four(row, i + WG * 4u);
        } else if DOWN_EACH > 2u {
            sum += down_four(row, i);
        } else if DOWN_EACH > 1u {
            sum += down_two(row, i);
        } else {
            sum += down_at(row, i);
        }
    }
    sum = group_sum(sum, lane);
    if lane.part + lane.in_part == 0u && row < p.lora_vec4s {
        y[p.y_width + row] = sum;
    }
}

fn down_two(row: u32, i: u32) -> f32 {
    return down_at(row, i) + down_at(row, i + WG);
}

fn down_four(row: u32, i: u32) -> f32 {
    return down_two(row, i) + down_two(row, i + WG * 2u);
}

fn down_at(row: u32, i: u32) -> f32 {
    let product = down_dot(min(row, p.lora_vec4s - 1u) * p.lora_stride, min(i, down_pieces() - 1u));
    return select(0.0, product, i < down_pieces());
}
