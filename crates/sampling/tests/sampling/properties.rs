//! Properties of all logits and all valid options.

use proptest::{collection::vec, option, prelude::*};
use rullama_sampling::{
    options::SamplingOptions,
    sampling::{Candidates, SamplingError, top_p},
};

use crate::{off, sampler};

/// Any bits, mixed with small values that are often equal.
fn logit() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        (-4i8..4).prop_map(f32::from),
        -30f32..30.0,
        Just(f32::NEG_INFINITY),
    ]
}

prop_compose! {
    fn filters()(
        temperature in prop_oneof![Just(0.0), Just(1e-40), 0f32..3.0, any::<i8>().prop_map(f32::from)],
        top_k in -1i32..20,
        top_p in 0f32..1.2,
        min_p in prop_oneof![Just(0.0), 0f32..1.2],
        typical_p in prop_oneof![Just(1.0), 0f32..1.2],
        top_n_sigma in -1f32..3.0,
        xtc in (0f32..1.2, 0f32..0.6),
        dynatemp in (prop_oneof![Just(0.0), 0f32..2.0], 0f32..3.0),
        mirostat in (prop_oneof![3 => Just(0u8), 1 => 1u8..3], 0f32..10.0, 0f32..1.0),
    ) -> SamplingOptions {
        SamplingOptions {
            temperature, top_k, top_p, min_p, typical_p, top_n_sigma,
            xtc_probability: xtc.0, xtc_threshold: xtc.1,
            dynatemp_range: dynatemp.0, dynatemp_exponent: dynatemp.1,
            mirostat: mirostat.0, mirostat_tau: mirostat.1, mirostat_eta: mirostat.2,
            ..off()
        }
    }
}

prop_compose! {
    fn options()(
        filters in filters(),
        penalties in (1e-30f32..1e30, any::<i32>(), -3e38f32..3e38),
        windows in (-1i32..9, -1i32..9),
        dry in (prop_oneof![Just(0.0), 0f32..1e38], 0f32..10.0, 0i32..4),
        logit_bias in proptest::collection::btree_map(0u32..40, -3e38f32..3e38, 0..4),
        suppress in vec(0u32..40, 0..4),
    ) -> SamplingOptions {
        SamplingOptions {
            repeat_penalty: penalties.0, frequency_penalty: penalties.1 as f32,
            presence_penalty: penalties.2,
            repeat_last_n: windows.0, dry_penalty_last_n: windows.1,
            dry_multiplier: dry.0, dry_base: dry.1, dry_allowed_length: dry.2,
            logit_bias, suppress,
            ..filters
        }
    }
}

fn can_choose(
    logits: &[f32],
    options: &SamplingOptions,
    id: u32,
    legal: &dyn Fn(u32) -> bool,
) -> bool {
    let logit = logits.get(id as usize).copied().unwrap_or(f32::NAN);
    logit > f32::NEG_INFINITY && !options.suppress.contains(&id) && legal(id)
}

proptest! {
    #[test]
    fn a_token_is_chosen_exactly_when_one_can_be(
        logits in vec(logit(), 0..40),
        options in options(),
        history in vec(0u32..45, 0..20),
        mask in option::of(any::<u64>()),
        seed: u32,
    ) {
        let legal = move |id: u32| mask.is_none_or(|mask| mask >> (id % 64) & 1 == 1);
        let allow: Option<&dyn Fn(u32) -> bool> = if mask.is_some() { Some(&legal) } else { None };
        let mut sampler = sampler(&options, seed);
        sampler.accept_prompt(&history);
        let possible = (0..40).any(|id| can_choose(&logits, &options, id, &legal));
        for _ in 0..3 {
            match sampler.sample_with(&logits, allow) {
                Ok(drawn) => {
                    prop_assert!(can_choose(&logits, &options, drawn.id, &legal));
                    prop_assert!(drawn.probability > 0.0 && drawn.probability <= 1.0);
                    sampler.accept(drawn.id);
                }
                Err(error) => {
                    prop_assert_eq!(error, SamplingError::NoCandidate { logits: logits.len() });
                    prop_assert!(!possible);
                }
            }
        }
    }

    #[test]
    fn survivors_are_some_of_the_candidates(logits in vec(logit(), 1..40), options in filters()) {
        let all = Candidates::from_logits(&logits);
        let mut sampler = sampler(&options, 1);
        if let Ok(survivors) = sampler.survivors(&logits, None) {
            prop_assert!(!survivors.is_empty());
            let mut ids = survivors.ids();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), survivors.len());
            prop_assert!(ids.iter().all(|id| all.ids().contains(id)));
            let sum: f32 = survivors.probabilities().iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-4);
        } else {
            prop_assert!(all.is_empty());
        }
    }

    #[test]
    fn selection_equals_a_full_sort(logits in vec(logit(), 0..200), k in 0usize..210) {
        let mut sorted = Candidates::from_logits(&logits);
        sorted.sort();
        let expected = &sorted.as_slice()[..k.min(sorted.len())];
        let largest = Candidates::largest_of(&logits, k);
        prop_assert_eq!(largest.as_slice(), expected);
        let mut kept = Candidates::from_logits(&logits);
        kept.keep_largest(k);
        prop_assert_eq!(kept.as_slice(), expected);
    }

    #[test]
    fn top_p_equals_a_plain_loop(logits in vec(-3f32..3.0, 1..1500), p in 0.01f32..0.99) {
        let mut sorted = Candidates::from_logits(&logits);
        sorted.sort();
        let mut sum = 0.0;
        let mut within = |probability: &f32| {
            let before = sum;
            sum += f64::from(*probability);
            before < f64::from(p)
        };
        let expected = sorted.probabilities().iter().take_while(|p| within(p)).count();
        let mut kept = Candidates::from_logits(&logits);
        top_p::apply(&mut kept, p);
        // Rounded probabilities may reach the limit one token earlier or later.
        prop_assert!(kept.len().abs_diff(expected) <= 1);
        prop_assert_eq!(kept.as_slice(), &sorted.as_slice()[..kept.len()]);
    }
}
