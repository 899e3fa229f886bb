//! The search for the fastest constants: one after another, and kept only if a comparison at the end confirms them.

use anyhow::Result;
use rullama_engine::gpu::{TUNING_PARAMETERS, Tuning};

/// Runs of a variant; the fastest counts.
const RUNS: usize = 3;
/// A variant replaces another only if it is so much faster: less may be noise.
const GAIN: f64 = 1.01;
/// Alternating measurements of the defaults and the result, of which the medians are compared.
const CONFIRMATIONS: usize = 5;

/// What the search measures.
pub(super) trait Rates {
    /// A description that is equal for tunings that select the same kernels.
    fn plan(&self, tuning: Tuning) -> Result<String>;

    /// Tokens per second: the fastest of so many runs.
    fn rate(&mut self, tuning: Tuning, runs: usize) -> Result<f64>;
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The defaults, if nothing is faster.
    pub(super) tuning: Tuning,
    /// Tokens per second with the defaults and with the tuning.
    pub(super) before: f64,
    pub(super) after: f64,
    /// Number of variants measured.
    pub(super) tried: usize,
}

/// A search.
pub(super) struct Search<'a, R> {
    rates: &'a mut R,
    /// Whether there is time left; fails if it was cancelled.
    go_on: &'a mut dyn FnMut() -> Result<bool>,
    /// Plans measured, so that none is measured twice.
    seen: Vec<String>,
}

impl<'a, R: Rates> Search<'a, R> {
    pub(super) fn new(rates: &'a mut R, go_on: &'a mut dyn FnMut() -> Result<bool>) -> Self {
        Self { rates, go_on, seen: Vec::new() }
    }

    /// Measures until nothing is faster or time is up.
    pub(super) fn run(mut self) -> Result<Found> {
        let mut best = Tuning::default();
        self.seen.push(self.rates.plan(best)?);
        let mut rate = self.rates.rate(best, RUNS)?;
        'search: for parameter in &TUNING_PARAMETERS {
            for value in parameter.values {
                let Some(tuning) = parameter.set(best, *value) else { continue };
                if !(self.go_on)()? {
                    break 'search;
                }
                let plan = self.rates.plan(tuning)?;
                if self.seen.contains(&plan) {
                    continue;
                }
                self.seen.push(plan);
                let found = self.rates.rate(tuning, RUNS)?;
                // The clock of a GPU drifts, so the best one so far is measured again.
                if found > rate * GAIN && found > self.rates.rate(best, RUNS)? * GAIN {
                    (best, rate) = (tuning, found);
                }
            }
        }
        self.confirm(best)
    }

    /// Compares a tuning with the defaults.
    fn confirm(self, tuning: Tuning) -> Result<Found> {
        let tried = self.seen.len();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for _ in 0..CONFIRMATIONS {
            // Only to notice that it was cancelled.
            (self.go_on)()?;
            before.push(self.rates.rate(Tuning::default(), RUNS)?);
            if tuning != Tuning::default() {
                after.push(self.rates.rate(tuning, RUNS)?);
            }
        }
        let before = median(before);
        let after = if after.is_empty() { before } else { median(after) };
        Ok(match after >= before * GAIN {
            true => Found { tuning, before, after, tried },
            false => Found { tuning: Tuning::default(), before, after: before, tried },
        })
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::{Found, Rates, Result, Search, Tuning};

    /// A device whose rate follows from the constants and the number of measurements.
    struct Fake {
        rate: fn(Tuning, usize) -> f64,
        measured: Vec<Tuning>,
    }

    impl Rates for Fake {
        fn plan(&self, tuning: Tuning) -> Result<String> {
            // Constants of looping workgroups have no effect here.
            let same = Tuning::default();
            let Tuning { loop_factor, loop_lanes, loop_pair_lanes, .. } = same;
            Ok(format!("{:?}", Tuning { loop_factor, loop_lanes, loop_pair_lanes, ..tuning }))
        }

        fn rate(&mut self, tuning: Tuning, _runs: usize) -> Result<f64> {
            self.measured.push(tuning);
            Ok((self.rate)(tuning, self.measured.len()))
        }
    }

    fn searched(rate: fn(Tuning, usize) -> f64, mut steps: usize) -> (Found, Vec<Tuning>) {
        let mut fake = Fake { rate, measured: Vec::new() };
        let mut go_on = || {
            let left = steps > 0;
            steps = steps.saturating_sub(1);
            Ok(left)
        };
        let found = Search::new(&mut fake, &mut go_on).run().expect("rates");
        (found, fake.measured)
    }

    #[test]
    fn the_fastest_constants_are_found_together() {
        let rate = |tuning: Tuning, _| {
            100.0
                + if tuning.busy_lanes == 16_384 { 10.0 } else { 0.0 }
                + if tuning.wide_rows == 2 { 5.0 } else { 0.0 }
        };
        let (found, _) = searched(rate, 1000);
        assert_eq!(found.tuning, Tuning { busy_lanes: 16_384, wide_rows: 2, ..Tuning::default() });
        assert_eq!((found.before, found.after), (100.0, 115.0));
    }

    #[test]
    fn gains_within_noise_and_those_not_confirmed_are_not_kept() {
        let (found, _) = searched(|tuning, _| 100.0 + f64::from(tuning.split_factor) * 0.1, 1000);
        assert_eq!(found.tuning, Tuning::default());
        // Fast at first, slow when compared at the end.
        let drifting = |tuning: Tuning, count| match tuning.split_factor {
            1 if count < 20 => 120.0,
            1 => 90.0,
            _ => 100.0,
        };
        let (found, measured) = searched(drifting, 1000);
        assert!(measured.iter().any(|tuning| tuning.split_factor == 1));
        assert_eq!((found.tuning, found.after), (Tuning::default(), 100.0));
    }

    #[test]
    fn a_gpu_that_slows_down_does_not_keep_a_variant_from_winning_fairly() {
        // Every measurement is slower than the one before it.
        let rate = |tuning: Tuning, count: usize| {
            (200.0 - count as f64) * if tuning.split_factor == 1 { 1.5 } else { 1.0 }
        };
        let (found, _) = searched(rate, 1000);
        assert_eq!(found.tuning, Tuning { split_factor: 1, ..Tuning::default() });
    }

    #[test]
    fn nothing_is_measured_twice_and_time_ends_the_search() {
        let (found, measured) = searched(|_, _| 100.0, 1000);
        let looping = |tuning: &&Tuning| tuning.loop_factor != Tuning::default().loop_factor;
        assert_eq!(measured.iter().filter(looping).count(), 0);
        assert_eq!(found.tried, 21);
        let (found, _) = searched(|_, _| 100.0, 4);
        assert!(found.tried <= 4, "{}", found.tried);
    }

    #[test]
    fn cancelling_is_an_error() {
        let mut fake = Fake { rate: |_, _| 100.0, measured: Vec::new() };
        let mut go_on = || anyhow::bail!("interrupted");
        assert!(Search::new(&mut fake, &mut go_on).run().is_err());
    }
}
