//! Log-probabilities of raw logits.

use rullama_sampling::sampling::logprobs::logprobs;

use crate::{LOGITS, assert_close, logits_of};

#[test]
fn by_hand() {
    let found = logprobs(&logits_of(&[4.0, 1.0, 3.0, 2.0]), 1, 3);
    assert_close(&[found.chosen.logprob], &[0.1f64.ln()]);
    assert_eq!(found.chosen.id, 1);
    assert_eq!(found.top.iter().map(|t| t.id).collect::<Vec<_>>(), [0, 2, 3]);
    let top: Vec<f32> = found.top.iter().map(|t| t.logprob).collect();
    assert_close(&top, &[0.4f64.ln(), 0.3f64.ln(), 0.2f64.ln()]);
}

#[test]
fn probabilities_sum_to_one() {
    let found = logprobs(&LOGITS, 0, 20);
    assert_eq!(found.top.len(), 6);
    let sum: f64 = found.top.iter().map(|t| f64::from(t.logprob).exp()).sum();
    assert!((sum - 1.0).abs() < 1e-6);
    assert_eq!(found.top[0], found.chosen);
    assert_eq!(logprobs(&LOGITS, 0, 0).top, []);
}

#[test]
fn large_logits_do_not_overflow() {
    let found = logprobs(&[3e38, 3e38, -3e38], 0, 3);
    assert_close(&[found.chosen.logprob], &[0.5f64.ln()]);
    assert_eq!(found.top[2].logprob, f32::MIN);
    let found = logprobs(&[-2000.0, -2000.0], 1, 0);
    assert_close(&[found.chosen.logprob], &[0.5f64.ln()]);
}

#[test]
fn impossible_tokens_get_the_lowest_number() {
    let logits = [f32::NAN, 0.0, f32::NEG_INFINITY];
    for chosen in [0, 2, 3] {
        assert_eq!(logprobs(&logits, chosen, 0).chosen.logprob, f32::MIN);
    }
    assert_eq!(logprobs(&logits, 1, 9).top.len(), 1);
    assert_eq!(logprobs(&[], 0, 5).top, []);
}
