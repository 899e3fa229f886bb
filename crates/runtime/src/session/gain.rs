//! Chooses the number of drafts per round from the acceptance rate; 0 if drafting does not pay.
//! Costs are estimated, not measured, so that results are reproducible.

/// Tokens generated without drafts before drafting is tried again.
const REST: usize = 64;
/// Weight of the past acceptance rate, in drafts.
const MEMORY: f64 = 16.0;
/// Initial acceptance rate, high enough to try drafting.
const INITIAL_RATE: f64 = 0.75;
/// Minimum estimated speedup for drafting.
const MIN_GAIN: f64 = 1.05;

/// Cost of a round, relative to a step without drafts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RoundCost {
    /// Fixed overhead of a round.
    pub(super) start: f64,
    /// Cost per draft: drafting and verification.
    pub(super) draft: f64,
}

/// Acceptance statistics and the number of drafts chosen from them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gain {
    most: usize,
    cost: RoundCost,
    /// Acceptance rate of drafts whose predecessors were accepted.
    accepted: f64,
    /// Tokens left until drafting is tried again.
    rest: usize,
    /// Whether the number of drafts is fixed.
    fixed: bool,
}

impl Gain {
    pub(super) fn new(most: usize, cost: RoundCost, fixed: bool) -> Self {
        Self { most, cost, accepted: INITIAL_RATE, rest: 0, fixed }
    }

    /// Number of tokens to draft; 0 if a step without drafts is faster.
    pub(super) fn length(&self) -> usize {
        if self.fixed {
            return self.most;
        }
        if self.rest > 0 {
            return 0;
        }
        let best = (1..=self.most).max_by(|a, b| self.gain(*a).total_cmp(&self.gain(*b)));
        best.filter(|length| self.gain(*length) >= MIN_GAIN).unwrap_or(0)
    }

    /// Estimated speedup of a round with this number of drafts.
    fn gain(&self, drafts: usize) -> f64 {
        let tokens: f64 = (0..=drafts).map(|i| self.accepted.powi(i as i32)).sum();
        tokens / (1.0 + self.cost.start + drafts as f64 * self.cost.draft)
    }

    /// Records the result of a round.
    pub(super) fn learn(&mut self, drafted: usize, accepted: usize) {
        if drafted == 0 {
            return;
        }
        // Drafts after the first rejected one were not evaluated.
        let evaluated = accepted + usize::from(accepted < drafted);
        self.accepted = (self.accepted * MEMORY + accepted as f64) / (MEMORY + evaluated as f64);
        if self.length() == 0 {
            self.rest = REST;
        }
    }

    /// Records a token generated without drafts.
    pub(super) fn rested(&mut self) {
        if self.rest > 0 {
            self.rest -= 1;
            if self.rest == 0 {
                self.accepted = INITIAL_RATE;
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
    fn accepted_drafts_increase_the_length() {
        let mut gain = Gain::new(6, cost(0.2), false);
        let first = gain.length();
        (0..40).for_each(|_| gain.learn(gain.length(), gain.length()));
        assert!(gain.length() > first, "{first} and still {}", gain.length());
        assert_eq!(gain.length(), 6);
    }

    #[test]
    fn rejected_drafts_pause_drafting() {
        let mut gain = Gain::new(6, cost(0.2), false);
        let mut rounds = 0;
        while gain.length() > 0 {
            gain.learn(gain.length(), 0);
            rounds += 1;
            assert!(rounds < 30, "drafting continues although nothing is accepted");
        }
        (0..REST).for_each(|_| gain.rested());
        assert!(gain.length() > 0);
    }

    #[test]
    fn expensive_drafts_are_not_used() {
        assert_eq!(Gain::new(4, cost(1.5), false).length(), 0);
        assert_eq!(Gain::new(4, cost(1.5), true).length(), 4);
    }

    #[test]
    fn empty_rounds_change_nothing() {
        let mut gain = Gain::new(4, cost(0.2), false);
        let before = gain.clone();
        gain.learn(0, 0);
        assert_eq!(gain, before);
    }
}
