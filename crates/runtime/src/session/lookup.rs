//! Prompt lookup: drafts the tokens that followed the last occurrence of the current n-gram.

/// N-gram lengths, tried in this order.
const LENGTHS: [usize; 3] = [4, 3, 2];

/// Up to `most` tokens that followed the last earlier occurrence of the final n-gram.
pub(crate) fn look_up(tokens: &[u32], most: usize) -> Vec<u32> {
    let found = LENGTHS.into_iter().find_map(|length| {
        let before = tokens.len().checked_sub(length)?;
        let (earlier, end) = (&tokens[..tokens.len() - 1], &tokens[before..]);
        let at = earlier.windows(length).rposition(|window| window == end)?;
        Some(&tokens[at + length..])
    });
    found.map_or(Vec::new(), |following| following.iter().copied().take(most).collect())
}

#[cfg(test)]
mod tests {
    use super::look_up;

    #[test]
    fn drafts_follow_the_longest_last_match() {
        for (tokens, most, drafts) in [
            (&[1, 2, 3, 4, 5, 2, 3][..], 4, &[4, 5, 2, 3][..]),
            (&[1, 2, 3, 4, 5, 2, 3], 2, &[4, 5]),
            // The longest n-gram wins, then the latest occurrence.
            (&[1, 2, 3, 9, 2, 3, 8, 1, 2, 3], 1, &[9]),
            (&[2, 3, 9, 2, 3, 8, 5, 2, 3], 1, &[8]),
            (&[7, 7, 7], 3, &[7]),
            (&[1, 2, 3], 3, &[]),
            (&[1], 3, &[]),
            (&[], 3, &[]),
        ] {
            assert_eq!(look_up(tokens, most), drafts, "{tokens:?}");
        }
    }
}
