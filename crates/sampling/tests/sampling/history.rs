//! Which tokens are penalised.

use rullama_sampling::options::SamplingOptions;

use crate::{LOGITS, off, sampler};

/// Logits after the penalties, for a window and a history of prompt and generated tokens.
fn logits(repeat_last_n: i32, prompt: &[u32], generated: &[u32]) -> Vec<f32> {
    let options = SamplingOptions {
        repeat_penalty: 1.5,
        frequency_penalty: 0.1,
        presence_penalty: 0.2,
        repeat_last_n,
        ..off()
    };
    let mut sampler = sampler(&options, 1);
    sampler.accept_prompt(prompt);
    for &token in generated {
        sampler.accept(token);
    }
    let candidates = sampler.survivors(&LOGITS, None).expect("candidates");
    candidates.as_slice().iter().map(|candidate| candidate.logit).collect()
}

#[track_caller]
fn check(repeat_last_n: i32, prompt: &[u32], generated: &[u32], expected: &[f64]) {
    crate::assert_close(&logits(repeat_last_n, prompt, generated), expected);
}

#[test]
fn prompt_and_generated_tokens_count_within_the_window() {
    let worked = [1.6, 2.5, 1.0, -0.3, -1.8, -2.0];
    check(64, &[0, 0], &[3, 4], &worked);
    check(4, &[5, 5, 5, 0, 0], &[3, 4], &worked);
    check(-1, &[0, 0], &[3, 4], &worked);
    // One of the two 0s has left the window.
    check(3, &[0, 0], &[3, 4], &[1.7, 2.5, 1.0, -0.3, -1.8, -2.0]);
    check(0, &[0, 0], &[3, 4], &[3.0, 2.5, 1.0, 0.0, -1.0, -2.0]);
}

#[test]
fn the_whole_context_is_kept() {
    let mut long = vec![0, 0];
    long.extend(std::iter::repeat_n(9, 5_000));
    check(-1, &long, &[3, 4], &[1.6, 2.5, 1.0, -0.3, -1.8, -2.0]);
    check(64, &long, &[3, 4], &[3.0, 2.5, 1.0, -0.3, -1.8, -2.0]);
}

#[test]
fn sampling_does_not_change_the_history() {
    let options = SamplingOptions { presence_penalty: 100.0, temperature: 0.0, ..off() };
    let mut sampler = sampler(&options, 1);
    for _ in 0..3 {
        assert_eq!(sampler.sample(&LOGITS).expect("a token").id, 0);
    }
    sampler.accept(0);
    assert_eq!(sampler.sample(&LOGITS).expect("a token").id, 1);
}

#[test]
fn tokens_outside_the_vocabulary_are_ignored() {
    check(64, &[4_000_000_000], &[6], &[3.0, 2.5, 1.0, 0.0, -1.0, -2.0]);
}

#[test]
fn penalties_never_make_a_token_impossible() {
    let options = SamplingOptions {
        repeat_penalty: 3e38,
        frequency_penalty: 3e38,
        presence_penalty: 3e38,
        ..off()
    };
    let mut sampler = sampler(&options, 1);
    sampler.accept_prompt(&[0, 1, 0, 1, 0]);
    assert_eq!(sampler.survivors(&[-1.0, 1.0], None).expect("candidates").len(), 2);
}
