//! DRY through the sampler: window, breakers and limits.

use rullama_sampling::{
    options::SamplingOptions,
    sampling::{Sampler, SequenceBreakers},
};

use crate::{off, sampler};

fn options() -> SamplingOptions {
    SamplingOptions { dry_multiplier: 0.8, ..off() }
}

/// Token n is the n-th letter; 10 is a line break and 11 is "x:".
fn with_breakers(sampler: Sampler) -> Sampler {
    let texts: Vec<String> =
        ('a'..='j').map(String::from).chain(["\n".into(), "x:".into()]).collect();
    let vocabulary = (0..).zip(texts.iter().map(String::as_bytes));
    let breakers = SamplingOptions::default().dry_sequence_breakers;
    sampler.with_breakers(SequenceBreakers::new(&breakers, vocabulary, |_| Vec::new()))
}

/// Penalties of all tokens after this context.
fn penalties(sampler: &mut Sampler) -> Vec<(u32, f32)> {
    let candidates = sampler.survivors(&[0.0; 12], None).expect("candidates");
    let changed = candidates.as_slice().iter().filter(|candidate| candidate.logit != 0.0);
    changed.map(|candidate| (candidate.id, -candidate.logit)).collect()
}

#[track_caller]
fn check(options: &SamplingOptions, context: &[u32], expected: &[(u32, f32)]) {
    let mut sampler = with_breakers(sampler(options, 1));
    sampler.accept_prompt(context);
    assert_eq!(penalties(&mut sampler), expected);
}

#[test]
fn longer_repetitions_cost_more() {
    check(&options(), &[7, 8, 5, 7, 8], &[(5, 0.8)]);
    check(&options(), &[7, 8, 9, 5, 7, 8, 9], &[(5, 0.8 * 1.75)]);
    check(&options(), &[8, 5, 7, 8], &[]);
    // Two continuations of the same end, one after a longer match.
    check(&options(), &[1, 2, 3, 4, 2, 3, 6, 1, 2, 3], &[(4, 0.8 * 1.75), (6, 0.8)]);
}

#[test]
fn occurrences_may_overlap_the_end() {
    check(&options(), &[3, 3, 3], &[(3, 0.8)]);
    check(&options(), &[3, 3, 3, 3], &[(3, 0.8 * 1.75)]);
}

#[test]
fn tokens_outside_the_window_are_ignored() {
    let context = [7, 8, 9, 5, 7, 8, 9];
    let window = |dry_penalty_last_n| SamplingOptions { dry_penalty_last_n, ..options() };
    check(&window(7), &context, &[(5, 0.8 * 1.75)]);
    check(&window(6), &context, &[(5, 0.8)]);
    check(&window(5), &context, &[]);
    check(&window(0), &context, &[]);
    check(&window(-1), &context, &[(5, 0.8 * 1.75)]);
}

#[test]
fn breakers_cap_the_length() {
    check(&options(), &[7, 10, 8, 9, 5, 7, 10, 8, 9], &[(5, 0.8)]);
    check(&options(), &[7, 8, 10, 9, 5, 7, 8, 10, 9], &[]);
    check(&options(), &[7, 8, 11, 5, 7, 8, 11], &[]);
    // A breaker that comes next is never penalised.
    check(&options(), &[7, 8, 10, 7, 8], &[]);
    check(&options(), &[7, 8, 11, 7, 8], &[]);
}

#[test]
fn switches() {
    let context = [7, 8, 9, 5, 7, 8, 9];
    check(&SamplingOptions { dry_multiplier: 0.0, ..options() }, &context, &[]);
    check(&SamplingOptions { dry_base: 0.99, ..options() }, &context, &[]);
    check(&SamplingOptions { dry_base: 1.0, ..options() }, &context, &[(5, 0.8)]);
    check(&SamplingOptions { dry_allowed_length: 4, ..options() }, &context, &[]);
}

#[test]
fn tokens_outside_the_vocabulary_are_ignored() {
    check(&options(), &[7, 8, 4_000_000_000, 7, 8], &[]);
}
