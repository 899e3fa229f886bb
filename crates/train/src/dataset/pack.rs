//! Packing of short examples into one sequence, in which they do not attend to each other.

use super::Example;
use crate::memory::Shape;

/// Packs examples into sequences of at most this shape, first fit; longer examples get their own. Positions are not restarted:
/// RoPE depends only on their differences.
pub fn packed<'a>(examples: impl IntoIterator<Item = &'a Example>, most: Shape) -> Vec<Example> {
    let mut sequences: Vec<Example> = Vec::new();
    for example in examples {
        // First fit, so that little space is left.
        let fits = |sequence: &&mut Example| {
            sequence.ids.len() + example.ids.len() <= most.tokens
                && sequence.targets() + example.targets() <= most.targets
        };
        match sequences.iter_mut().find(fits) {
            None => sequences.push(example.clone()),
            Some(sequence) => {
                // Fits: a sequence has no more tokens than a graph has rows.
                let first = sequence.ids.len() as u32;
                sequence.ids.extend(&example.ids);
                sequence.learned.extend(&example.learned);
                sequence.starts.extend(example.starts.iter().map(|start| start + first));
            }
        }
    }
    sequences
}

#[cfg(test)]
mod tests {
    use super::{Example, Shape, packed};

    #[test]
    fn examples_share_sequences_and_keep_their_starts() {
        let example = |length: u32| Example::after_prompt((0..length).collect(), 1);
        let examples = [5, 4, 3, 12].map(example);
        let sequences = packed(&examples, Shape { tokens: 8, targets: usize::MAX });
        let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.ids.len()).collect();
        assert_eq!(lengths, [8, 4, 12]);
        assert_eq!(sequences[0].starts, [0, 0, 0, 0, 0, 5, 5, 5]);
        assert_eq!(sequences[0].targets(), 4 + 2);
        assert!(!sequences[0].learned[5]);
        let sequences = packed(&examples, Shape { tokens: 8, targets: 5 });
        let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.ids.len()).collect();
        assert_eq!(lengths, [5, 7, 12]);
    }
}
