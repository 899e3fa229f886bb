// As combine.wgsl, with the heads of a token as one f16 column for matrix units     one workgroup per token
override WIDTH: u32 = 256u;
override DIM4: u32 = 64u;
override TILE: u32 = 16u;
//#use indexing
//#use kv_splits
//#use partials
// Before the arrays in workgroup memory of the next part: naga fails on overrides that come later.
//#use f16_columns
//#use reduce

@group(0) @binding(3) var<storage, read_write> o: array<vec4<f16>>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let token = group.x;
    let vec4s = HEADS * DIM4;
    var most = vec4(0.0);
    for (var i = lane.index; i < vec4s; i += WG) {
        most = max(most, abs(heads(token, i)));
    }
    let exponent = f16_exponent(wg_max(max(max(most.x, most.y), max(most.z, most.w)), lane));
    let inverse = f16_inverse(exponent);
    let first = f16_start(token) / 4u;
    for (var i = lane.index; i < vec4s; i += WG) {
        o[first + f16_place(i * 4u) / 4u] = vec4<f16>(heads(token, i) * inverse);
    }
    for (var i = vec4s + lane.index; i < f16_padded() / 4u; i += WG) {
        o[first + i] = vec4<f16>();
    }
    if lane.index == 0u {
        o[first + f16_padded() / 4u] = vec4(f16(exponent));
    }
}

// A vec4 of a token's heads; zeros past the step's count.
fn heads(token: u32, i: u32) -> vec4<f32> {
    let all = found(token * HEADS + i / DIM4, i % DIM4, 0u, 1u);
    return select(vec4(0.0), all.sum / all.weights, token < run.count);
}
