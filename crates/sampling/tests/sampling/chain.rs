//! The whole chain: distributions computed by hand, and the order of the filters.

use std::collections::BTreeMap;

use rullama_sampling::{
    options::SamplingOptions,
    sampling::{Candidates, SamplingError, draw},
};

use crate::{LOGITS, assert_close, logits_of, off, sampler, survivors};

/// Probabilities 0.4, 0.3, 0.2, 0.1.
fn falling() -> Vec<f32> {
    logits_of(&[4.0, 3.0, 2.0, 1.0])
}

#[track_caller]
fn check(options: &SamplingOptions, logits: &[f32], ids: &[u32], probabilities: &[f64]) {
    let candidates = survivors(options, logits);
    assert_eq!(candidates.ids(), ids);
    assert_close(&candidates.probabilities(), probabilities);
}

#[test]
fn distributions_by_hand() {
    let logits = falling();
    check(&off(), &logits, &[0, 1, 2, 3], &[0.4, 0.3, 0.2, 0.1]);
    let options = SamplingOptions { top_k: 3, ..off() };
    check(&options, &logits, &[0, 1, 2], &[4.0 / 9.0, 3.0 / 9.0, 2.0 / 9.0]);
    // Half the temperature squares the weights, twice the temperature takes their root.
    let options = SamplingOptions { temperature: 0.5, ..options };
    check(&options, &logits, &[0, 1, 2], &[16.0 / 29.0, 9.0 / 29.0, 4.0 / 29.0]);
    let options = SamplingOptions { top_p: 0.6, temperature: 2.0, ..off() };
    let (a, b) = (4f64.sqrt(), 3f64.sqrt());
    check(&options, &logits, &[0, 1], &[a / (a + b), b / (a + b)]);
    let options = SamplingOptions { min_p: 0.45, ..off() };
    check(&options, &logits, &[0, 1, 2], &[4.0 / 9.0, 3.0 / 9.0, 2.0 / 9.0]);
    let options = SamplingOptions { temperature: 0.0, ..off() };
    check(&options, &logits, &[0], &[1.0]);
}

#[test]
fn draws_invert_the_distribution() {
    let candidates = Candidates::from_logits(&logits_of(&[1.0, 2.0, 5.0]));
    let mut counts = [0; 3];
    for step in 0..800 {
        let uniform = (f64::from(step) + 0.5) / 800.0;
        let (id, _) = draw::draw(&candidates, uniform).expect("a token");
        counts[id as usize] += 1;
    }
    assert_eq!(counts, [100, 200, 500]);
}

#[test]
fn draws_follow_the_distribution() {
    let mut sampler = sampler(&SamplingOptions { top_k: 3, ..off() }, 7);
    let logits = falling();
    let mut counts = [0u32; 4];
    for _ in 0..18_000 {
        counts[sampler.sample(&logits).expect("a token").id as usize] += 1;
    }
    // 18,000 draws with probabilities 4/9, 3/9, 2/9: standard deviations are 67, 63 and 56.
    for (count, expected) in counts.iter().zip([8000u32, 6000, 4000, 0]) {
        assert!(count.abs_diff(expected) <= 4 * 67, "{counts:?}");
    }
    assert_eq!(counts[3], 0);
}

#[test]
fn temperature_comes_after_truncation() {
    for temperature in [0.01, 1.0, 100.0] {
        let options = SamplingOptions { temperature, top_p: 0.65, ..off() };
        assert_eq!(survivors(&options, &falling()).ids(), [0, 1], "temperature {temperature}");
        let options = SamplingOptions { temperature, min_p: 0.45, ..off() };
        assert_eq!(survivors(&options, &falling()).ids(), [0, 1, 2], "temperature {temperature}");
    }
}

#[test]
fn top_k_comes_before_top_p() {
    // Of all four the first two reach 0.5; of the best two the first does alone (4/7).
    let options = SamplingOptions { top_p: 0.5, ..off() };
    assert_eq!(survivors(&options, &falling()).ids(), [0, 1]);
    let options = SamplingOptions { top_k: 2, ..options };
    assert_eq!(survivors(&options, &falling()).ids(), [0]);
}

#[test]
fn top_n_sigma_comes_before_top_k() {
    // Over the best two alone σ is 0.5 and the second would be dropped.
    let logits = [10.0, 9.0, 0.0, 0.0, 0.0, 0.0];
    let options = SamplingOptions { top_n_sigma: 1.0, top_k: 2, ..off() };
    assert_eq!(survivors(&options, &logits).ids(), [0, 1]);
}

#[test]
fn typical_comes_between_top_k_and_top_p() {
    // Typical alone keeps 1, 0 in this order; top p then sorts.
    let options = SamplingOptions { typical_p: 0.5, ..off() };
    assert_eq!(survivors(&options, &LOGITS).ids(), [1, 0]);
    let options = SamplingOptions { top_p: 0.99, ..options };
    assert_eq!(survivors(&options, &LOGITS).ids(), [0, 1]);
    // With one token left by top k, typical has nothing to choose.
    let options = SamplingOptions { top_k: 1, ..options };
    assert_eq!(survivors(&options, &LOGITS).ids(), [0]);
}

#[test]
fn xtc_comes_after_truncation_and_before_temperature() {
    // Among all, two reach 0.22; among the best three (4/9, 3/9, 2/9) all do.
    let options = SamplingOptions { xtc_probability: 1.0, xtc_threshold: 0.22, ..off() };
    assert_eq!(survivors(&options, &falling()).ids(), [1, 2, 3]);
    let options = SamplingOptions { top_k: 3, ..options };
    assert_eq!(survivors(&options, &falling()).ids(), [2]);
    // With the temperature applied first, no token would reach 0.35 and none would be dropped.
    let options = SamplingOptions { temperature: 100.0, top_k: 2, xtc_threshold: 0.35, ..options };
    assert_eq!(survivors(&options, &falling()).ids(), [1]);
}

#[test]
fn biases_come_before_penalties() {
    let options =
        SamplingOptions { logit_bias: BTreeMap::from([(0, -2.0)]), repeat_penalty: 2.0, ..off() };
    let mut sampler = sampler(&options, 1);
    sampler.accept(0);
    let candidates = sampler.survivors(&[1.0, 0.0], None).expect("candidates");
    // (1 − 2) · 2, where the other order would give 1/2 − 2.
    assert_eq!(candidates.as_slice()[0].logit, -2.0);
}

#[test]
fn penalties_come_before_top_k() {
    let options = SamplingOptions { presence_penalty: 5.0, top_k: 1, ..off() };
    let mut sampler = sampler(&options, 1);
    sampler.accept(0);
    assert_eq!(sampler.survivors(&[3.0, 2.0, 1.0], None).expect("candidates").ids(), [1]);
}

#[test]
fn suppressed_and_biased_tokens() {
    let options = SamplingOptions { suppress: vec![0, 99], temperature: 0.0, ..off() };
    assert_eq!(sampler(&options, 1).sample(&LOGITS).expect("a token").id, 1);
    let biases = BTreeMap::from([(5, 100.0), (1000, 3.0)]);
    let options = SamplingOptions { logit_bias: biases, temperature: 0.0, ..off() };
    assert_eq!(sampler(&options, 1).sample(&LOGITS).expect("a token").id, 5);
}

#[test]
fn greedy_takes_the_best_token_unless_a_filter_dropped_it() {
    let greedy = SamplingOptions { temperature: 0.0, ..SamplingOptions::default() };
    let drawn = |options: &SamplingOptions| sampler(options, 3).sample(&LOGITS).expect("a token");
    assert_eq!(drawn(&greedy).id, 0);
    assert_eq!(drawn(&greedy).probability, 1.0);
    let options = SamplingOptions { typical_p: 0.3, ..greedy.clone() };
    assert_eq!(drawn(&options).id, 1);
    let options = SamplingOptions { xtc_probability: 1.0, ..greedy };
    assert_eq!(drawn(&options).id, 1);
}

#[test]
fn no_candidates_is_an_error() {
    let impossible = [f32::NAN, f32::NEG_INFINITY, f32::NAN];
    for options in [off(), SamplingOptions { temperature: 0.0, ..off() }] {
        let mut sampler = sampler(&options, 1);
        assert_eq!(sampler.sample(&impossible), Err(SamplingError::NoCandidate { logits: 3 }));
        assert_eq!(sampler.sample(&[]), Err(SamplingError::NoCandidate { logits: 0 }));
    }
    let options = SamplingOptions { suppress: vec![0, 1], ..off() };
    let none = sampler(&options, 1).sample(&[1.0, 2.0]);
    assert_eq!(none, Err(SamplingError::NoCandidate { logits: 2 }));
}

#[test]
fn real_sized_vocabulary() {
    let logits: Vec<f32> = (0..262_144u32).map(|id| ((id * 7919) % 262_144) as f32 / 1e4).collect();
    let expected: Vec<u32> = {
        let mut ids: Vec<u32> = (0..262_144).collect();
        ids.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]));
        ids.into_iter().take(64).collect()
    };
    let options = SamplingOptions { top_k: 64, ..off() };
    assert_eq!(survivors(&options, &logits).ids(), expected);
}
