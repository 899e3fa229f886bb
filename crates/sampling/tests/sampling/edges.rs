//! Filters at the limits of their parameters.

use rullama_sampling::sampling::{
    Candidates, Order, draw, min_p,
    temperature::{self, DynamicTemperature},
    top_k, top_n_sigma, top_p, typical,
    xtc::{self, Xtc},
};

use crate::{LOGITS, logits_of};

#[track_caller]
fn check(logits: &[f32], stage: impl Fn(&mut Candidates), expected: &[u32]) {
    let mut candidates = Candidates::from_logits(logits);
    stage(&mut candidates);
    assert_eq!(candidates.ids(), expected);
}

#[test]
fn top_k_limits() {
    let logits = [1.0, 3.0, 2.0];
    check(&logits, |c| top_k::apply(c, 0), &[0, 1, 2]);
    check(&logits, |c| top_k::apply(c, -1), &[0, 1, 2]);
    check(&logits, |c| top_k::apply(c, 1), &[1]);
    check(&logits, |c| top_k::apply(c, 3), &[1, 2, 0]);
    check(&logits, |c| top_k::apply(c, i32::MAX), &[1, 2, 0]);
}

#[test]
fn equal_logits_are_ordered_by_id() {
    let equal = [0.0, -0.0, 0.0, 0.0, -0.0];
    check(&equal, |c| top_k::apply(c, 3), &[0, 1, 2]);
    check(&equal, |c| top_p::apply(c, 0.5), &[0, 1, 2]);
    check(&equal, |c| typical::apply(c, 0.5), &[0, 1, 2]);
    check(&equal, |c| temperature::apply(c, 0.0), &[0]);
    check(&[1.0, 2.0, 2.0, 1.0], |c| top_k::apply(c, 3), &[1, 2, 0]);
    assert_eq!(Candidates::largest_of(&equal, 2).ids(), [0, 1]);
}

#[test]
fn top_p_limits() {
    let logits = logits_of(&[0.25, 0.5, 0.125, 0.125]);
    check(&logits, |c| top_p::apply(c, 0.0), &[1]);
    check(&logits, |c| top_p::apply(c, 0.4999), &[1]);
    check(&logits, |c| top_p::apply(c, 0.5001), &[1, 0]);
    check(&logits, |c| top_p::apply(c, 0.9999), &[1, 0, 2, 3]);
    // Off: not even sorted.
    check(&logits, |c| top_p::apply(c, 1.0), &[0, 1, 2, 3]);
    check(&logits, |c| top_p::apply(c, 7.0), &[0, 1, 2, 3]);
}

#[test]
fn top_p_includes_the_token_that_reaches_it() {
    // Weights 1 and 1: the sum after the first is exactly a half.
    check(&[0.0, 0.0], |c| top_p::apply(c, 0.5), &[0]);
    check(&[0.0, 0.0], |c| typical::apply(c, 0.5), &[0, 1]);
}

#[test]
fn min_p_limits() {
    check(&LOGITS, |c| min_p::apply(c, 0.0), &[0, 1, 2, 3, 4, 5]);
    check(&LOGITS, |c| min_p::apply(c, 1.0), &[0]);
    check(&LOGITS, |c| min_p::apply(c, 5.0), &[0]);
    check(&[1.0, 1.0, 0.0], |c| min_p::apply(c, 1.0), &[0, 1]);
    // The order is kept.
    check(&[0.0, 1.0, 0.5], |c| min_p::apply(c, 0.5), &[1, 2]);
    check(&[0.5, 1.0, 0.0], |c| min_p::apply(c, 0.5), &[0, 1]);
}

#[test]
fn typical_limits() {
    check(&LOGITS, |c| typical::apply(c, 1.0), &[0, 1, 2, 3, 4, 5]);
    check(&LOGITS, |c| typical::apply(c, 0.0), &[1]);
    // A probability that rounds to 0 has a finite surprise.
    check(&[0.0, -500.0], |c| typical::apply(c, 0.9), &[0]);
}

#[test]
fn top_n_sigma_limits() {
    check(&LOGITS, |c| top_n_sigma::apply(c, -1.0), &[0, 1, 2, 3, 4, 5]);
    check(&LOGITS, |c| top_n_sigma::apply(c, 0.0), &[0, 1, 2, 3, 4, 5]);
    check(&LOGITS, |c| top_n_sigma::apply(c, 1e-6), &[0]);
    check(&LOGITS, |c| top_n_sigma::apply(c, 100.0), &[0, 1, 2, 3, 4, 5]);
    check(&[2.0, 2.0, 2.0], |c| top_n_sigma::apply(c, 1.0), &[0, 1, 2]);
    // Masked tokens are excluded from the standard deviation.
    let masked = [3.0, f32::NEG_INFINITY, 2.5, 1.0, 0.0, f32::NAN, -1.0, -2.0];
    check(&masked, |c| top_n_sigma::apply(c, 1.0), &[0, 2]);
}

#[test]
fn xtc_limits() {
    let always = Xtc { probability: 1.0, threshold: 0.1 };
    let never = Xtc { probability: 0.0, ..always };
    let too_high = Xtc { threshold: 0.51, ..always };
    let untouched = [0, 1, 2, 3, 4, 5];
    check(&LOGITS, |c| xtc::apply(c, &never, || panic!("takes no random number")), &untouched);
    check(&LOGITS, |c| xtc::apply(c, &too_high, || panic!("takes no random number")), &untouched);
    check(&[1.0], |c| xtc::apply(c, &always, || panic!("takes no random number")), &[0]);
    let half = Xtc { probability: 0.5, ..always };
    check(&LOGITS, |c| xtc::apply(c, &half, || 0.5), &[1, 2, 3, 4, 5]);
    check(&LOGITS, |c| xtc::apply(c, &half, || 0.500001), &untouched);
    // A single top choice is kept.
    check(&LOGITS, |c| xtc::apply(c, &Xtc { threshold: 0.5, ..always }, || 0.0), &untouched);
    // With a threshold of 0 all tokens are top choices: the least likely is kept.
    check(&LOGITS, |c| xtc::apply(c, &Xtc { threshold: 0.0, ..always }, || 0.0), &[5]);
}

#[test]
fn temperature_limits() {
    check(&LOGITS, |c| temperature::apply(c, 0.0), &[0]);
    check(&LOGITS, |c| temperature::apply(c, -1.0), &[0]);
    // The quotients overflow, on either side of zero.
    check(&LOGITS, |c| temperature::apply(c, 1e-40), &[0]);
    check(&[-3.0, -2.0, -2.5], |c| temperature::apply(c, 1e-40), &[1]);
    check(&LOGITS, |c| temperature::apply(c, 1e30), &[0, 1, 2, 3, 4, 5]);
}

#[test]
fn dynamic_temperature_limits() {
    let dynamic = DynamicTemperature { temperature: 0.0, range: 0.7, exponent: 1.0 };
    // A temperature of 0 with a range is not greedy: equal logits have the maximum entropy, hence t_max.
    let equal = Candidates::from_logits(&[1.0, 1.0, 1.0]);
    assert!((dynamic.temperature_for(&equal) - 0.7).abs() < 1e-6);
    let mut one = Candidates::from_logits(&[2.0]);
    temperature::apply_dynamic(&mut one, &dynamic);
    assert_eq!(one.as_slice()[0].logit, 2.0);
    // One certain token: no entropy, so t_min.
    let certain = Candidates::from_logits(&[500.0, 0.0]);
    let dynamic = DynamicTemperature { temperature: 2.0, range: 0.5, exponent: 1.0 };
    assert!((dynamic.temperature_for(&certain) - 1.5).abs() < 1e-6);
}

#[test]
fn impossible_logits_are_no_candidates() {
    let logits = [f32::NAN, f32::NEG_INFINITY, 1.0, f32::INFINITY, f32::MIN];
    let candidates = Candidates::from_logits(&logits);
    assert_eq!(candidates.ids(), [2, 3, 4]);
    assert!(candidates.as_slice().iter().all(|candidate| candidate.logit.is_finite()));
    assert_eq!(Candidates::largest_of(&logits, 9).ids(), [3, 2, 4]);
}

#[test]
fn draw_limits() {
    let candidates = Candidates::from_logits(&[-200.0, 0.0, 0.0, -200.0]);
    let drawn = |uniform| draw::draw(&candidates, uniform).expect("a token");
    // The first token has weight 0, so even a uniform of 0 does not choose it.
    assert_eq!(drawn(0.0), (1, 0.5));
    assert_eq!(drawn(0.5), (1, 0.5), "a sum equal to the goal is enough");
    assert_eq!(drawn(0.500001), (2, 0.5));
    assert_eq!(drawn(1.0 - f64::EPSILON / 2.0), (2, 0.5));
    assert_eq!(draw::draw(&Candidates::from_logits(&[]), 0.5), None);
}

#[test]
fn filters_leave_the_documented_order() {
    let order = |stage: &dyn Fn(&mut Candidates)| {
        let mut candidates = Candidates::from_logits(&LOGITS);
        stage(&mut candidates);
        candidates.order()
    };
    assert_eq!(order(&|c| top_n_sigma::apply(c, 1.0)), Order::ById);
    assert_eq!(order(&|c| min_p::apply(c, 0.1)), Order::ById);
    assert_eq!(order(&|c| temperature::apply(c, 0.5)), Order::ById);
    assert_eq!(order(&|c| top_k::apply(c, 9)), Order::ByLogit);
    assert_eq!(order(&|c| top_p::apply(c, 0.5)), Order::ByLogit);
    assert_eq!(order(&|c| typical::apply(c, 0.5)), Order::Typical);
    let typical_then_top_p = |c: &mut Candidates| {
        typical::apply(c, 0.9);
        assert_eq!(c.ids(), [1, 0, 2]);
        top_p::apply(c, 0.99);
        assert_eq!(c.ids(), [0, 1, 2]);
    };
    assert_eq!(order(&typical_then_top_p), Order::ByLogit);
}
