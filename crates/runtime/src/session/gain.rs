//! How many tokens to draft, from how many were accepted: as many as pay, and none where none do.
//!
//! No clock is read: what a draft costs is estimated from what has to be computed, so that results are repeatable.

/// Tokens written without drafts before they are tried again.
const REST: usize = 64;
/// How many earlier drafts weigh as much as a new one decides.
const MEMORY: f64 = 16.0;
/// What is assumed of drafts before there were any: enough to try.
const HOPE: f64 = 0.75;
/// Rounds must be at least so much faster than tokens one by one.
const LEAST_GAIN: f64 = 1.05;

/// What a round costs, where a step without drafts costs one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RoundCost {
    /// Whatever is drafted, beside a step.
    pub(super) start: f64,
    /// Each draft: guessing and checking it.
    pub(super) draft: f64,
}

/// What has become of drafts, and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gain {
    most: usize,
    cost: RoundCost,
    /// The share of drafts that were accepted where those before them were.
    accepted: f64,
    /// Tokens left to be written without drafts.
    rest: usize,
    /// Never changes its mind.
    fixed: bool,
}

impl Gain {
    pub(super) fn new(most: usize, cost: RoundCost, fixed: bool) -> Self {
        Self { most, cost, accepted: HOPE, rest: 0, fixed }
    }

    /// How many tokens to draft; 0 where a step without drafts is faster.
    pub(super) fn length(&self) -> usize {
        if self.fixed {
            return self.most;
        }
        if self.rest > 0 {
            return 0;
        }
        let best = (1..=self.most).max_by(|a, b| self.gain(*a).total_cmp(&self.gain(*b)));
        best.filter(|length| self.gain(*length) >= LEAST_GAIN).unwrap_or(0)
    }

    /// Tokens of a round with so many drafts, by the steps without drafts that take as long.
    fn gain(&self, drafts: usize) -> f64 {
        let tokens: f64 = (0..=drafts).map(|i| self.accepted.powi(i as i32)).sum();
        tokens / (1.0 + self.cost.start + drafts as f64 * self.cost.draft)
    }

    /// What became of a round's drafts.
    pub(super) fn learn(&mut self, drafted: usize, accepted: usize) {
        if drafted == 0 {
            return;
        }
        // After the first that was refused nothing is known.
        let asked = accepted + usize::from(accepted < drafted);
        self.accepted = (self.accepted * MEMORY + accepted as f64) / (MEMORY + asked as f64);
        if self.length() == 0 {
            self.rest = REST;
        }
    }

    /// A token was written without drafts.
    pub(super) fn rested(&mut self) {
        if self.rest > 0 {
            self.rest -= 1;
            if self.rest == 0 {
                self.accepted = HOPE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Gain, REST, RoundCost};

    fn cost(draft: f64) -> RoundCost {
        RoundCost { start: 0.1, draft }
    }

    #[test]
    fn good_drafts_become_longer() {
        let mut gain = Gain::new(6, cost(0.2), false);
        let first = gain.length();
        (0..40).for_each(|_| gain.learn(gain.length(), gain.length()));
        assert!(gain.length() > first, "{first} and still {}", gain.length());
        assert_eq!(gain.length(), 6);
    }

    #[test]
    fn bad_drafts_end_and_are_tried_again() {
        let mut gain = Gain::new(6, cost(0.2), false);
        let mut rounds = 0;
        while gain.length() > 0 {
            gain.learn(gain.length(), 0);
            rounds += 1;
            assert!(rounds < 30, "drafts that are never accepted go on");
        }
        (0..REST).for_each(|_| gain.rested());
        assert!(gain.length() > 0);
    }

    #[test]
    fn dear_drafts_are_not_made() {
        assert_eq!(Gain::new(4, cost(1.5), false).length(), 0);
        assert_eq!(Gain::new(4, cost(1.5), true).length(), 4);
    }

    #[test]
    fn nothing_is_learnt_from_nothing() {
        let mut gain = Gain::new(4, cost(0.2), false);
        let before = gain.clone();
        gain.learn(0, 0);
        assert_eq!(gain, before);
    }
}
