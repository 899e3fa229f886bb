//! Mirostat through the sampler.

use rullama_sampling::options::SamplingOptions;

use crate::{LOGITS, assert_close, off, sampler};

fn options(version: u8) -> SamplingOptions {
    SamplingOptions { mirostat: version, mirostat_tau: 1.5, mirostat_eta: 0.1, ..off() }
}

#[test]
fn starts_at_twice_the_target_and_learns_the_surprise() {
    let mut sampler = sampler(&options(2), 42);
    assert_eq!(sampler.state().mirostat_mu, 3.0);
    // At μ = 3 tokens 0 and 1 stay; the first uniform, 0.797, draws 1.
    let drawn = sampler.sample(&LOGITS).expect("a token");
    assert_eq!(drawn.id, 1);
    let probability = 0.333863 / (0.550447 + 0.333863);
    assert_close(&[drawn.probability], &[probability]);
    assert_close(&[sampler.state().mirostat_mu], &[3.0 - 0.1 * (-probability.log2() - 1.5)]);
}

#[test]
fn version_1_keeps_k_by_the_formula() {
    // Logits fall like s·ln(rank) with s = 2: k = √(2^μ / (1 − 1/50)) = 2.86 at μ = 3.
    let logits: Vec<f32> = (1..=50).map(|rank| (-2.0 * f64::from(rank).ln()) as f32).collect();
    let candidates = sampler(&options(1), 1).survivors(&logits, None).expect("candidates");
    assert_eq!(candidates.ids(), [0, 1]);
    let options = SamplingOptions { mirostat_tau: 3.0, ..options(1) };
    // μ = 6: √(64 / 0.98) = 8.08.
    let candidates = sampler(&options, 1).survivors(&logits, None).expect("candidates");
    assert_eq!(candidates.len(), 8);
}

#[test]
fn other_filters_and_penalties_are_replaced() {
    let others = SamplingOptions {
        top_k: 1,
        min_p: 1.0,
        presence_penalty: 100.0,
        dry_multiplier: 100.0,
        xtc_probability: 1.0,
        dynatemp_range: 0.5,
        ..options(2)
    };
    let (mut plain, mut with_others) = (sampler(&options(2), 42), sampler(&others, 42));
    for _ in 0..20 {
        let drawn = plain.sample(&LOGITS).expect("a token");
        assert_eq!(with_others.sample(&LOGITS), Ok(drawn));
        plain.accept(drawn.id);
        with_others.accept(drawn.id);
    }
    // Biases and temperature stay.
    let options = SamplingOptions { suppress: vec![0], temperature: 0.0, ..options(1) };
    assert_eq!(sampler(&options, 1).sample(&LOGITS).expect("a token").id, 1);
}

#[test]
fn an_illegal_draw_does_not_change_the_limit() {
    let mut sampler = sampler(&options(2), 42);
    let drawn = sampler.sample_with(&LOGITS, Some(&|id| id == 5)).expect("a token");
    assert_eq!((drawn.id, drawn.probability), (5, 1.0));
    assert_close(&[sampler.state().mirostat_mu], &[3.0 + 0.1 * 1.5]);
}
