//! Learning-rate schedules.

/// The learning rate's course after the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScheduleShape {
    /// Constant.
    Constant,
    /// Linear decay to zero.
    Linear,
    /// Cosine decay to zero.
    #[default]
    Cosine,
}

/// The learning rate of each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The peak rate.
    pub rate: f64,
    /// Steps of linear warm-up.
    pub warmup: u32,
    /// The course after the warm-up.
    pub shape: ScheduleShape,
    /// Total steps, including the warm-up.
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
                ScheduleShape::Constant => 1.0,
                ScheduleShape::Linear => 1.0 - done,
                ScheduleShape::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::{Schedule, ScheduleShape};

    #[test]
    fn rates_warm_up_and_decay() {
        for (shape, warmup, wanted) in [
            (ScheduleShape::Constant, 0, [1.0, 1.0, 1.0, 1.0]),
            (ScheduleShape::Linear, 0, [1.0, 0.75, 0.5, 0.25]),
            (ScheduleShape::Linear, 2, [0.5, 1.0, 1.0, 0.5]),
            (ScheduleShape::Cosine, 2, [0.5, 1.0, 1.0, 0.5]),
        ] {
            let schedule = Schedule { rate: 1.0, warmup, shape, steps: 4 };
            for (step, wanted) in (0..).zip(wanted) {
                let rate = schedule.rate_of(step);
                assert!((rate - wanted).abs() < 1e-12, "{shape:?} {warmup} {step}: {rate}");
            }
        }
    }

    #[test]
    fn a_schedule_without_steps_stays_within_the_peak_rate() {
        let schedule = Schedule { rate: 1.0, warmup: 3, shape: ScheduleShape::Cosine, steps: 0 };
        assert!((0..9).all(|step| (0.0..=1.0).contains(&schedule.rate_of(step))));
    }
}
