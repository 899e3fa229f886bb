//! Sampled frequencies against the expected distribution.

use super::{
    Draw,
    cpu::{choose, uniform},
};
use crate::graph::Step;

const PLAIN: Draw = Draw { temperature: 1.0, top_p: 1.0, min_p: 0.0, top_k: 0.0 };
const LOGITS: [f32; 6] = [3.0, 2.5, 1.0, 0.0, -1.0, -2.0];

fn steps(count: u32) -> impl Iterator<Item = Step> {
    (0..count).map(|position| Step { position, count: 1, seed: 42, reserved: 0 })
}

/// Frequencies of many draws.
fn shares(draw: Draw) -> [f64; 6] {
    const DRAWS: u32 = 40_000;
    let mut shares = [0.0; 6];
    for step in steps(DRAWS) {
        shares[choose(&LOGITS, &draw, uniform(&step, 0, 1))] += 1.0 / f64::from(DRAWS);
    }
    shares
}

fn check(draw: Draw, wanted: [f64; 6]) {
    let shares = shares(draw);
    // Four standard deviations of a frequency over 40,000 draws are at most 0.01.
    let close = shares.iter().zip(wanted).all(|(got, want)| (got - want).abs() < 0.01);
    assert!(close, "{draw:?}: {shares:?}, not {wanted:?}");
    let dropped = shares.iter().zip(wanted).filter(|(_, want)| *want == 0.0);
    assert!(dropped.into_iter().all(|(got, _)| *got == 0.0), "{draw:?}: {shares:?}");
}

#[test]
fn frequencies_match_the_filters() {
    check(PLAIN, [0.550_447, 0.333_863, 0.074_495, 0.027_405, 0.010_082, 0.003_709]);
    let three = [0.574_097, 0.348_207, 0.077_696, 0.0, 0.0, 0.0];
    check(Draw { top_k: 3.0, ..PLAIN }, three);
    check(Draw { top_p: 0.9, ..PLAIN }, three);
    check(Draw { min_p: 0.1, ..PLAIN }, three);
    check(Draw { top_p: 0.5, ..PLAIN }, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    check(Draw { min_p: 2.0, ..PLAIN }, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    check(Draw { temperature: 0.0, ..PLAIN }, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    // Filters use the logits before the temperature is applied.
    check(
        Draw { top_k: 3.0, temperature: 2.0, ..PLAIN },
        [0.466_299, 0.363_154, 0.170_547, 0.0, 0.0, 0.0],
    );
}

#[test]
fn uniforms_are_below_one_and_differ_by_seed_and_position() {
    let of = |seed, position| uniform(&Step { position, count: 1, seed, reserved: 0 }, 0, 1);
    assert_ne!(of(1, 5), of(2, 5));
    assert_ne!(of(1, 5), of(1, 6));
    // Only the last token's position counts, not how the prompt was split into passes.
    assert_eq!(of(1, 5), uniform(&Step { position: 2, count: 4, seed: 1, reserved: 0 }, 0, 1));
    // Each of several lists is drawn at its own token's position.
    assert_eq!(of(1, 5), uniform(&Step { position: 3, count: 4, seed: 1, reserved: 0 }, 2, 4));
    let mean = steps(10_000).map(|step| f64::from(uniform(&step, 0, 1))).sum::<f64>() / 1e4;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
    assert!(steps(10_000).all(|step| (0.0..1.0).contains(&uniform(&step, 0, 1))));
}
