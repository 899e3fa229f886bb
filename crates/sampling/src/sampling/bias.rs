//! Logit bias: values added to the logits of given tokens; suppressed tokens get −∞.

use std::collections::BTreeMap;

use super::change_logit;

/// Adds each token's bias, then suppresses. Ids outside the vocabulary are ignored.
pub fn apply(logits: &mut [f32], biases: &BTreeMap<u32, f32>, suppressed: &[u32]) {
    for (&id, &bias) in biases {
        change_logit(logits, id, |logit| logit + bias);
    }
    for &id in suppressed {
        if let Some(logit) = usize::try_from(id).ok().and_then(|id| logits.get_mut(id)) {
            *logit = f32::NEG_INFINITY;
        }
    }
}
