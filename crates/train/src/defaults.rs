//! What is done by default, the same in the program and in browsers. How adapters are updated is in
//! [`Settings::default`](crate::Settings), how rates go on in [`Shaped::default`](crate::Shaped).

/// The inner size of an adapter's pairs.
pub const RANK: usize = 16;
/// How often every example is seen.
pub const EPOCHS: f64 = 3.0;
/// The highest learning rate.
pub const RATE: f64 = 2e-4;
/// Most tokens of a sequence.
pub const SEQUENCE: usize = 1024;
/// Steps between two evaluations.
pub const EVALUATE: u32 = 20;
/// Bytes of GPU memory, the model's included.
pub const MEMORY: u64 = 8_000_000_000;

/// Sequences of a step, if there are as many.
const BATCH: usize = 4;

/// What the products of an adapter of this rank are multiplied with, before they are divided by the rank.
pub fn alpha(rank: usize) -> f32 {
    2.0 * rank as f32
}

/// Sequences of a step.
pub fn batch(examples: usize) -> usize {
    examples.clamp(1, BATCH)
}

/// Steps in which so many examples are seen that often, `batch` at a time.
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
            assert_eq!(found, wanted, "{examples} examples, {epochs} times");
        }
    }
}
