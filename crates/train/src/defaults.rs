//! Defaults shared by the program and browsers. Those of the optimizer are in [`Settings::default`](crate::Settings), the
//! learning-rate schedule's in [`ScheduleShape::default`](crate::ScheduleShape).

/// LoRA rank.
pub const RANK: usize = 16;
/// Passes over the training examples.
pub const EPOCHS: f64 = 3.0;
/// Peak learning rate.
pub const RATE: f64 = 2e-4;
/// Maximum tokens of a sequence.
pub const SEQUENCE: usize = 1024;
/// Steps between two evaluations.
pub const EVALUATE: u32 = 20;
/// GPU memory budget in bytes, including the model.
pub const MEMORY: u64 = 8_000_000_000;

/// Sequences per step, if there are that many examples.
const BATCH: usize = 4;

/// LoRA alpha for a rank.
pub fn alpha(rank: usize) -> f32 {
    2.0 * rank as f32
}

/// Sequences per step.
pub fn batch(examples: usize) -> usize {
    examples.clamp(1, BATCH)
}

/// Steps for `epochs` passes over the examples, `batch` at a time.
pub fn steps(examples: usize, epochs: f64, batch: usize) -> u32 {
    let steps = (examples as f64 * epochs.max(0.0) / batch.max(1) as f64).ceil();
    steps.max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_examples_and_epochs() {
        for (examples, epochs, wanted) in [
            (1, 3.0, (1, 3)),
            (8, 3.0, (4, 6)),
            (9, 1.0, (4, 3)),
            (5, 0.0, (4, 1)),
            (0, 1.0, (1, 1)),
        ] {
            let batch = batch(examples);
            let found = (batch, steps(examples, epochs, batch));
            assert_eq!(found, wanted, "{examples} examples, {epochs} epochs");
        }
    }
}
