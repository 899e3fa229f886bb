//! DRY: a token that would continue a repetition of the context's end by `n` tokens loses
//! `multiplier · base^(n − allowed_length)`.

use std::collections::BTreeMap;

use super::{SequenceBreakers, change_logit, finite};

/// Parameters of the penalty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dry {
    /// Penalty of the shortest repetition that counts; 0 = off.
    pub multiplier: f32,
    /// Growth per token beyond it; below 1 = off.
    pub base: f32,
    /// Repetitions shorter than this are not penalised.
    pub allowed_length: usize,
}

impl Dry {
    /// Whether no token can be penalised.
    pub fn is_off(&self) -> bool {
        self.multiplier == 0.0 || self.base < 1.0
    }
}

/// Penalises the tokens that would continue a repetition. `newest_first` is the context, cut to the window.
pub fn apply(logits: &mut [f32], newest_first: &[u32], dry: &Dry, breakers: &SequenceBreakers) {
    if dry.is_off() {
        return;
    }
    let cap = breakers.tokens_since(newest_first).unwrap_or(newest_first.len());
    if cap < dry.allowed_length {
        return;
    }
    for (token, length) in continuations(newest_first, cap) {
        if length >= dry.allowed_length && !breakers.is_breaker(token) {
            let drop = penalty(dry, length - dry.allowed_length);
            change_logit(logits, token, |logit| logit - drop);
        }
    }
}

/// The tokens that followed an earlier occurrence of the context's end, with the length of the longest match (at
/// most `cap`).
fn continuations(newest_first: &[u32], cap: usize) -> BTreeMap<u32, usize> {
    let mut longest = BTreeMap::new();
    for (back, length) in matches_with_end(newest_first).into_iter().enumerate().skip(1) {
        let followed_by = newest_first[back - 1];
        let best = longest.entry(followed_by).or_insert(0);
        *best = length.min(cap).max(*best);
    }
    longest
}

/// For every position, how many tokens going back from it equal those going back from the end (the Z function
/// of the reversed context): linear in the window.
fn matches_with_end(newest_first: &[u32]) -> Vec<usize> {
    let len = newest_first.len();
    let mut lengths = vec![0; len];
    // start..end is the match that extends furthest so far.
    let (mut start, mut end) = (0, 0);
    for at in 1..len {
        let mut length = if at < end { lengths[at - start].min(end - at) } else { 0 };
        while at + length < len && newest_first[length] == newest_first[at + length] {
            length += 1;
        }
        if at + length > end {
            (start, end) = (at, at + length);
        }
        lengths[at] = length;
    }
    lengths
}

/// `multiplier · base^excess`, the power kept below the largest f32.
fn penalty(dry: &Dry, excess: usize) -> f32 {
    let base = f64::from(dry.base);
    let max_exponent = libm::log(f64::from(f32::MAX)) / libm::log(base);
    // A base of 1 has no largest exponent: the quotient is infinite and the minimum is `excess`.
    let exponent = (excess as f64).min(libm::floor(max_exponent));
    finite((f64::from(dry.multiplier) * libm::pow(base, exponent)) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_equal_a_plain_search() {
        let contexts: [&[u32]; 6] = [
            &[],
            &[1],
            &[1, 1, 1, 1, 1],
            &[1, 2, 1, 2, 1, 3, 1, 2, 1, 2],
            &[9, 8, 7, 5, 9, 8, 7],
            &[1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 1],
        ];
        for context in contexts {
            let plain: Vec<usize> = (0..context.len())
                .map(|at| match at {
                    0 => 0,
                    _ => context.iter().zip(&context[at..]).take_while(|(a, b)| a == b).count(),
                })
                .collect();
            assert_eq!(matches_with_end(context), plain, "{context:?}");
        }
    }

    #[test]
    fn power_is_capped_below_the_largest_number() {
        let dry = Dry { multiplier: 1.0, base: 2.0, allowed_length: 0 };
        assert_eq!(penalty(&dry, 3), 8.0);
        assert_eq!(penalty(&dry, 127), 1.7014118e38);
        assert_eq!(penalty(&dry, 1_000_000), 1.7014118e38);
        assert_eq!(penalty(&Dry { base: 1.0, ..dry }, 1_000_000), 1.0);
    }
}
