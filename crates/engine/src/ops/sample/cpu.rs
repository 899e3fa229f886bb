//! The CPU reference of sampling.

use super::Draw;
use crate::graph::Step;

/// Below this argument, the exponential is not a normal f32.
const LEAST_EXPONENT: f32 = -87.0;
/// The minimum temperature, so that divisions stay finite.
const LEAST_TEMPERATURE: f32 = 1e-6;
/// Replaces minus infinity before a division.
const LEAST_DIFFERENCE: f32 = -1e30;

/// The index of the drawn candidate; `uniform` is in [0, 1).
pub(super) fn choose(logits: &[f32], draw: &Draw, uniform: f32) -> usize {
    // All logits are minus infinity: no candidate is allowed.
    if draw.temperature <= 0.0 || logits[0] < -3.0e38 {
        return 0;
    }
    let kept = kept(logits, draw);
    let weights = weights(&logits[..kept], draw.temperature.max(LEAST_TEMPERATURE));
    let goal = uniform * weights.iter().sum::<f32>();
    let mut sum = 0.0;
    let mut chosen = 0;
    for (i, weight) in weights.iter().enumerate() {
        if *weight > 0.0 {
            chosen = i;
        }
        sum += weight;
        if sum >= goal {
            break;
        }
    }
    chosen
}

/// The number of candidates that the filters keep: all filters drop the end of the list.
fn kept(logits: &[f32], draw: &Draw) -> usize {
    let k = if draw.top_k >= 1.0 { (draw.top_k as usize).min(logits.len()) } else { logits.len() };
    let weights = weights(&logits[..k], 1.0);
    let goal = draw.top_p * weights.iter().sum::<f32>();
    let mut kept = 1;
    let mut before = weights[0];
    while kept < k
        && (draw.top_p >= 1.0 || before < goal)
        && (draw.min_p <= 0.0 || weights[kept] >= draw.min_p)
    {
        before += weights[kept];
        kept += 1;
    }
    kept
}

/// `e^((l − l_max) / t)`, without denormals.
fn weights(logits: &[f32], temperature: f32) -> Vec<f32> {
    let weight = |logit: &f32| {
        let exponent = (logit - logits[0]).max(LEAST_DIFFERENCE) / temperature;
        if exponent < LEAST_EXPONENT { 0.0 } else { exponent.exp() }
    };
    logits.iter().map(weight).collect()
}

/// The random value of a row, in [0, 1): 24 bits of a hash of the pass's seed and the row's position; a single row has the position of the
/// pass's last token.
pub(super) fn uniform(step: &Step, row: usize, rows: usize) -> f32 {
    let token = if rows == 1 { step.count.wrapping_sub(1) } else { row as u32 };
    let position = step.position.wrapping_add(token);
    (mix(mix(step.seed).wrapping_add(position)) >> 8) as f32 / (1 << 24) as f32
}

/// One step of a linear congruential generator, and PCG's output permutation.
fn mix(x: u32) -> u32 {
    let state = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}
