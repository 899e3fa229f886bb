//! Sequence breakers: texts at which DRY stops matching, as tokens of one vocabulary.

use std::collections::BTreeMap;

/// Finds sequence breakers in a token stream.
///
/// A token whose text contains a breaker is one by itself. A token whose text ends with the beginning of a
/// breaker is one when the tokens of the rest follow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SequenceBreakers {
    /// By first token, the token sequences that complete the breaker; empty for a token that contains it.
    tails: BTreeMap<u32, Vec<Vec<u32>>>,
}

impl SequenceBreakers {
    /// Finds the breakers in a vocabulary. `encode` turns the rest of a breaker into tokens.
    pub fn new<'a>(
        breakers: &[String],
        vocabulary: impl Iterator<Item = (u32, &'a [u8])>,
        encode: impl Fn(&str) -> Vec<u32>,
    ) -> Self {
        let breakers: Vec<Breaker> = breakers
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| Breaker { text, splits: splits(text, &encode) })
            .collect();
        let mut tails: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new();
        for (id, text) in vocabulary {
            for tail in breakers.iter().flat_map(|breaker| breaker.tails_of(text)) {
                tails.entry(id).or_default().push(tail);
            }
        }
        Self { tails }
    }

    /// Whether the token contains a breaker.
    pub fn is_breaker(&self, token: u32) -> bool {
        self.tails.get(&token).is_some_and(|tails| tails.iter().any(Vec::is_empty))
    }

    /// Number of tokens after the most recent breaker; `None` without a breaker.
    pub(crate) fn tokens_since(&self, newest_first: &[u32]) -> Option<usize> {
        newest_first.iter().enumerate().find_map(|(after, token)| {
            let tails = self.tails.get(token)?;
            let followed = newest_first[..after].iter().rev();
            let matching = tails.iter().filter(|tail| {
                tail.len() <= after && followed.clone().zip(tail.iter()).all(|(a, b)| a == b)
            });
            matching.map(|tail| after - tail.len()).min()
        })
    }
}

/// A breaker, and every split of it into a beginning and the tokens of the rest.
struct Breaker<'a> {
    text: &'a str,
    splits: Vec<(&'a str, Vec<u32>)>,
}

impl Breaker<'_> {
    /// The token sequences that complete the breaker after a token of this text.
    fn tails_of(&self, text: &[u8]) -> Vec<Vec<u32>> {
        if text.windows(self.text.len()).any(|window| window == self.text.as_bytes()) {
            return vec![Vec::new()];
        }
        let ends_with = |beginning: &str| text.ends_with(beginning.as_bytes());
        let fitting = self.splits.iter().filter(|(beginning, _)| ends_with(beginning));
        fitting.map(|(_, rest)| rest.clone()).collect()
    }
}

fn splits(text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Vec<(&str, Vec<u32>)> {
    let cuts = text.char_indices().skip(1).map(|(at, _)| text.split_at(at));
    let encoded = cuts.map(|(beginning, rest)| (beginning, encode(rest)));
    // If the rest had no tokens, every beginning would be a breaker.
    encoded.filter(|(_, rest)| !rest.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: [&str; 7] = ["a", "b:", "\n", "x END", "E", "ND", "N"];

    fn breakers(texts: &[&str]) -> SequenceBreakers {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        let vocabulary = (0..).zip(VOCABULARY.iter().map(|text| text.as_bytes()));
        // The tokens of "ND"; for any other rest, tokens that never occur.
        SequenceBreakers::new(&texts, vocabulary, |rest| match rest {
            "ND" => vec![5],
            _ => vec![6, 99],
        })
    }

    #[test]
    fn tokens_that_contain_a_breaker_are_breakers() {
        let breakers = breakers(&[":", "\n", "END", ""]);
        let found: Vec<u32> = (0..7).filter(|&id| breakers.is_breaker(id)).collect();
        assert_eq!(found, [1, 2, 3]);
    }

    #[test]
    fn a_breaker_may_span_tokens() {
        let breakers = breakers(&["END"]);
        assert_eq!(breakers.tokens_since(&[0, 0, 5, 4, 0]), Some(2));
        assert_eq!(breakers.tokens_since(&[0, 0, 6, 4, 0]), None, "the rest does not follow");
        assert_eq!(breakers.tokens_since(&[4, 0]), None, "the rest is not there yet");
        assert_eq!(breakers.tokens_since(&[3, 0]), Some(0));
        assert_eq!(breakers.tokens_since(&[]), None);
    }

    #[test]
    fn the_most_recent_breaker_counts() {
        let breakers = breakers(&[":", "\n"]);
        assert_eq!(breakers.tokens_since(&[0, 0, 0, 1, 0, 2]), Some(3));
    }
}
