//! Drawing with a grammar: first without the mask, then again with it.

use std::cell::Cell;

use rullama_sampling::{options::SamplingOptions, sampling::SamplingError};

use crate::{LOGITS, off, sampler};

#[test]
fn a_legal_token_is_taken_without_masking() {
    let calls = Cell::new(0);
    let allow = |id: u32| {
        calls.set(calls.get() + 1);
        id < 3
    };
    let mut plain = sampler(&SamplingOptions::default(), 42);
    let mut constrained = sampler(&SamplingOptions::default(), 42);
    for _ in 0..8 {
        let expected = plain.sample(&LOGITS).expect("a token");
        assert_eq!(constrained.sample_with(&LOGITS, Some(&allow)), Ok(expected));
    }
    assert_eq!(calls.get(), 8, "one call per token");
}

#[test]
fn a_redraw_takes_the_next_random_number() {
    // Uniforms of seed 42: 0.797, 0.183, 0.780, 0.597. The first draws 1 (illegal); the second draws 0 among
    // the legal; 0.780 draws 1 again, and 0.597 among the legal draws 0 (0.844 of it).
    let mut sampler = sampler(&SamplingOptions::default(), 42);
    let allow = |id: u32| id != 1;
    for _ in 0..2 {
        assert_eq!(sampler.sample_with(&LOGITS, Some(&allow)).expect("a token").id, 0);
    }
    assert_eq!(sampler.state().draws, 8, "four draws of two outputs");
}

#[test]
fn the_mask_is_applied_before_truncation() {
    let options = SamplingOptions { top_k: 1, ..off() };
    let allow = |id: u32| id == 4;
    let drawn = sampler(&options, 1).sample_with(&LOGITS, Some(&allow)).expect("a token");
    assert_eq!((drawn.id, drawn.probability), (4, 1.0));
}

#[test]
fn suppressed_tokens_stay_suppressed() {
    let options = SamplingOptions { suppress: vec![4], ..off() };
    let allow = |id: u32| id >= 4;
    let mut sampler = sampler(&options, 1);
    for _ in 0..50 {
        assert_eq!(sampler.sample_with(&LOGITS, Some(&allow)).expect("a token").id, 5);
    }
}

#[test]
fn no_legal_token_is_an_error() {
    let drawn = sampler(&off(), 1).sample_with(&LOGITS, Some(&|_| false));
    assert_eq!(drawn, Err(SamplingError::NoCandidate { logits: 6 }));
}
