//! How the learning rate changes over a run.

/// The form of the rate after the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shaped {
    /// It stays.
    Constant,
    /// It falls to zero in a straight line.
    Linear,
    /// It falls to zero along half a cosine.
    #[default]
    Cosine,
}

/// The rate of each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The highest rate.
    pub rate: f64,
    /// Steps in which it rises to that, in a straight line.
    pub warmup: u32,
    /// What follows.
    pub shape: Shaped,
    /// Steps of the whole run.
    pub steps: u32,
}

impl Schedule {
    /// The rate of a step, counted from 0.
    pub fn rate_of(&self, step: u32) -> f64 {
        if step < self.warmup {
            return self.rate * f64::from(step + 1) / f64::from(self.warmup);
        }
        let rest = self.steps.saturating_sub(self.warmup).max(1);
        let done = (f64::from(step - self.warmup) / f64::from(rest)).min(1.0);
        self.rate
            * match self.shape {
                Shaped::Constant => 1.0,
                Shaped::Linear => 1.0 - done,
                Shaped::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::{Schedule, Shaped};

    #[test]
    fn rates_rise_and_fall() {
        for (shape, warmup, wanted) in [
            (Shaped::Constant, 0, [1.0, 1.0, 1.0, 1.0]),
            (Shaped::Linear, 0, [1.0, 0.75, 0.5, 0.25]),
            (Shaped::Linear, 2, [0.5, 1.0, 1.0, 0.5]),
            (Shaped::Cosine, 2, [0.5, 1.0, 1.0, 0.5]),
        ] {
            let schedule = Schedule { rate: 1.0, warmup, shape, steps: 4 };
            for (step, wanted) in (0..).zip(wanted) {
                let rate = schedule.rate_of(step);
                assert!((rate - wanted).abs() < 1e-12, "{shape:?} {warmup} {step}: {rate}");
            }
        }
    }

    #[test]
    fn no_steps_give_no_nonsense() {
        let schedule = Schedule { rate: 1.0, warmup: 3, shape: Shaped::Cosine, steps: 0 };
        assert!((0..9).all(|step| (0.0..=1.0).contains(&schedule.rate_of(step))));
    }
}
