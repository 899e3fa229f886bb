//! The worked numbers that two other implementations agree on.

use std::collections::BTreeMap;

use rullama_sampling::{
    options::SamplingOptions,
    sampling::{
        Candidates, SequenceBreakers,
        dry::{self, Dry},
        min_p,
        mirostat::Mirostat,
        penalties::{self, Penalties},
        temperature::{self, DynamicTemperature},
        top_k, top_n_sigma, top_p, typical,
        xtc::{self, Xtc},
    },
};

use crate::{LOGITS, assert_close, sampler};

#[track_caller]
fn check(stage: impl Fn(&mut Candidates), expected: &[u32]) {
    let mut candidates = Candidates::from_logits(&LOGITS);
    stage(&mut candidates);
    assert_eq!(candidates.ids(), expected);
}

#[test]
fn probabilities() {
    let found = Candidates::from_logits(&LOGITS).probabilities();
    assert_close(&found, &[0.550447, 0.333863, 0.074495, 0.027405, 0.010082, 0.003709]);
}

#[test]
fn truncating_filters() {
    check(|c| top_k::apply(c, 3), &[0, 1, 2]);
    check(|c| top_p::apply(c, 0.9), &[0, 1, 2]);
    check(|c| min_p::apply(c, 0.1), &[0, 1, 2]);
    check(|c| top_p::apply(c, 0.5), &[0]);
    check(|c| typical::apply(c, 0.5), &[1, 0]);
    check(|c| typical::apply(c, 0.9), &[1, 0, 2]);
    check(|c| top_n_sigma::apply(c, 1.0), &[0, 1]);
}

#[test]
fn xtc() {
    let xtc = |threshold| Xtc { probability: 1.0, threshold };
    check(|c| xtc::apply(c, &xtc(0.1), || 0.999), &[1, 2, 3, 4, 5]);
    check(|c| xtc::apply(c, &xtc(0.05), || 0.999), &[2, 3, 4, 5]);
}

#[test]
fn repeat_penalties() {
    let mut logits = LOGITS;
    let counts = BTreeMap::from([(0, 2), (3, 1), (4, 1)]);
    let penalties = Penalties { repeat: 1.5, frequency: 0.1, presence: 0.2 };
    penalties::apply(&mut logits, &counts, &penalties);
    assert_close(&logits, &[1.6, 2.5, 1.0, -0.3, -1.8, -2.0]);
}

#[test]
fn dynamic_temperature() {
    let dynamic = DynamicTemperature { temperature: 1.0, range: 0.5, exponent: 1.0 };
    let mut candidates = Candidates::from_logits(&LOGITS);
    assert_close(&[dynamic.temperature_for(&candidates)], &[1.088267]);
    temperature::apply_dynamic(&mut candidates, &dynamic);
    let best = candidates.as_slice()[0].logit;
    assert!((best - 2.75668).abs() < 1e-5, "{best}");
}

#[test]
fn mirostat_2() {
    let mirostat = Mirostat { tau: 1.5, eta: 0.1, mu: 3.0 };
    check(|c| mirostat.truncate_2(c), &[0, 1]);
}

#[test]
fn repetition_by_dry() {
    let mut logits = [0.0; 10];
    let newest_first = [9, 8, 7, 5, 9, 8, 7];
    let dry = Dry { multiplier: 0.8, base: 1.75, allowed_length: 2 };
    dry::apply(&mut logits, &newest_first, &dry, &SequenceBreakers::default());
    assert_close(&logits, &[0.0, 0.0, 0.0, 0.0, 0.0, -1.4, 0.0, 0.0, 0.0, 0.0]);
}

#[track_caller]
fn check_draws(options: &SamplingOptions, expected: [u32; 8]) {
    let mut sampler = sampler(options, 42);
    let drawn = [(); 8].map(|()| sampler.sample(&LOGITS).expect("a token").id);
    assert_eq!(drawn, expected);
}

#[test]
fn seeded_draws() {
    let options = SamplingOptions::default();
    check_draws(&options, [1, 0, 1, 1, 0, 0, 0, 0]);
    let options = SamplingOptions { top_p: 1.0, temperature: 2.0, ..options };
    check_draws(&options, [2, 0, 2, 1, 1, 0, 1, 0]);
}
