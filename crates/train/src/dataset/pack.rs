//! Packing of short examples into one sequence, in which they do not attend to each other.

use super::Example;

/// Packs examples into sequences of at most `longest` tokens, first fit; longer examples get their own. Positions are not restarted:
/// RoPE depends only on their differences.
pub fn packed(examples: &[Example], longest: usize) -> Vec<Example> {
    let mut sequences: Vec<Example> = Vec::new();
    for example in examples {
        // First fit, so that little space is left.
        let fits = |sequence: &&mut Example| sequence.ids.len() + example.ids.len() <= longest;
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
    use super::{Example, packed};

    #[test]
    fn examples_share_sequences_and_keep_their_starts() {
        let example = |length: u32| Example::after_prompt((0..length).collect(), 1);
        let sequences = packed(&[example(5), example(4), example(3), example(12)], 8);
        let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.ids.len()).collect();
        assert_eq!(lengths, [8, 4, 12]);
        assert_eq!(sequences[0].starts, [0, 0, 0, 0, 0, 5, 5, 5]);
        assert_eq!(sequences[0].targets(), 4 + 2);
        assert!(!sequences[0].learned[5]);
    }
}
