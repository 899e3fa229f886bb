// Parameters of the router's kernels, and the softmax over the selected logits in workgroup memory.
override WG: u32 = 256u;
// 0 if the model has no expert scales: each is 1, and the logits are bound in their place.
override SCALED: u32 = 1u;

// As in the reference: maximum experts per token, and the magnitude to which logits are clamped.
const MAX_CHOSEN: u32 = 16u;
const LARGEST: f32 = 1e30;

struct Params {
    experts: u32,
    chosen: u32,
    tokens: u32,
    factor: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> scale: array<f32>;

var<workgroup> sh_chosen: array<u32, MAX_CHOSEN>;
var<workgroup> sh_scaled: array<f32, MAX_CHOSEN>;

// By its bits: compilers may assume that floats are never NaN.
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn expert_scale(expert: u32) -> f32 {
    return select(1.0, scale[min(expert, p.experts - 1u)], SCALED == 1u);
}

fn scaled(logit: f32) -> f32 {
    return select(clamp(logit, -LARGEST, LARGEST), -LARGEST, is_nan(logit)) * p.factor;
}

// The first selected logit is the largest.
fn power(j: u32) -> f32 {
    return exp(sh_scaled[j] - sh_scaled[0]);
}

fn power_sum() -> f32 {
    var sum = 0.0;
    for (var j = 0u; j < p.chosen; j++) {
        sum += power(j);
    }
    return sum;
}
