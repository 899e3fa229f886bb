//! Saving and restoring a sampler.

use rullama_sampling::{
    options::SamplingOptions,
    sampling::{Sampler, SamplerState, SamplingError},
};

use crate::{LOGITS, off, sampler};

fn eventful() -> SamplingOptions {
    SamplingOptions {
        repeat_penalty: 1.3,
        repeat_last_n: 5,
        dry_multiplier: 0.5,
        xtc_probability: 0.5,
        xtc_threshold: 0.05,
        temperature: 1.7,
        ..off()
    }
}

fn draw(sampler: &mut Sampler, count: usize) -> Vec<u32> {
    let step = |sampler: &mut Sampler| {
        let drawn = sampler.sample(&LOGITS).expect("a token").id;
        sampler.accept(drawn);
        drawn
    };
    (0..count).map(|_| step(sampler)).collect()
}

#[track_caller]
fn check(options: &SamplingOptions) {
    let mut original = sampler(options, 99);
    original.accept_prompt(&[2, 2, 5]);
    draw(&mut original, 700);
    let json = serde_json::to_string(&original.state()).expect("state is JSON");
    let state: SamplerState = serde_json::from_str(&json).expect("JSON is a state");
    let mut restored = sampler(options, 0);
    restored.restore(&state).expect("a good state");
    assert_eq!(restored.state(), original.state());
    assert_eq!(draw(&mut restored, 200), draw(&mut original, 200));
}

#[test]
fn a_restored_sampler_continues_the_same() {
    check(&eventful());
    check(&SamplingOptions { mirostat: 2, mirostat_tau: 1.3, ..off() });
    check(&SamplingOptions { repeat_last_n: -1, ..eventful() });
}

#[test]
fn equal_seeds_give_equal_draws_and_others_do_not() {
    let draws = |seed| draw(&mut sampler(&off(), seed), 50);
    assert_eq!(draws(5), draws(5));
    assert_ne!(draws(5), draws(6));
}

#[test]
fn damaged_states_are_refused_and_change_nothing() {
    let mut sampler = sampler(&eventful(), 4);
    draw(&mut sampler, 10);
    let good = sampler.state();
    let damaged = [
        SamplerState { mirostat_mu: f32::NAN, ..good.clone() },
        SamplerState { mirostat_mu: f32::INFINITY, ..good.clone() },
        SamplerState { draws: u64::MAX, ..good.clone() },
        SamplerState { xtc_draws: 1 << 40, ..good.clone() },
    ];
    for state in damaged {
        let refused = sampler.restore(&state);
        assert!(matches!(refused, Err(SamplingError::DamagedState { .. })), "{state:?}");
        assert_eq!(sampler.state(), good);
    }
}

#[test]
fn a_long_history_is_cut_to_the_window() {
    let mut sampler = sampler(&eventful(), 4);
    let state = SamplerState { history: (0..1000).collect(), ..sampler.state() };
    sampler.restore(&state).expect("a good state");
    let kept = sampler.state().history;
    assert_eq!(kept, (1000 - 64..1000).collect::<Vec<u32>>());
}
