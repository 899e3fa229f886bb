//! Where text may be split before merging.

/// The pairs of characters on the two sides of some merge: a set with false positives, like a Bloom filter.
///
/// No merge ever crosses any other pair of characters: the first one to cross it would join a piece ending in the left
/// character with a piece beginning with the right one. A space and `▁` are the same here, as in the vocabulary.
#[derive(Debug)]
pub(crate) struct Joints {
    /// For each ASCII character, a bit set of the ASCII characters that may follow it.
    ascii: [u128; 128],
    /// All other pairs, by hash.
    others: Vec<u64>,
}

/// 128 KiB: Gemma's merges have 33,695 pairs, which gives a false-positive rate of 3 %.
const BITS: u32 = 20;

impl Joints {
    pub(crate) fn new() -> Self {
        Self { ascii: [0; 128], others: vec![0; 1 << (BITS - 6)] }
    }

    /// Adds the pair of characters where two pieces are joined.
    pub(crate) fn insert(&mut self, left: &str, right: &str) {
        let (Some(left), Some(right)) = (left.chars().next_back(), right.chars().next()) else {
            return;
        };
        let (left, right) = (spaced(left), spaced(right));
        // A run of newlines is always a word of its own, whatever the merge list says.
        if (left == '\n') != (right == '\n') {
            return;
        }
        if left.is_ascii() && right.is_ascii() {
            self.ascii[left as usize] |= 1 << right as u32;
        } else {
            let bit = bit(left, right);
            self.others[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Whether a merge may join a piece that ends in `left` with one that begins with `right`.
    #[inline]
    pub(crate) fn may_join(&self, left: char, right: char) -> bool {
        if left.is_ascii() && right.is_ascii() {
            return self.ascii[left as usize] >> right as u32 & 1 == 1;
        }
        let (left, right) = (spaced(left), spaced(right));
        if left.is_ascii() && right.is_ascii() {
            return self.ascii[left as usize] >> right as u32 & 1 == 1;
        }
        let bit = bit(left, right);
        left != '\n' && right != '\n' && self.others[bit / 64] >> (bit % 64) & 1 == 1
    }
}

#[inline]
fn spaced(c: char) -> char {
    if c == '▁' { ' ' } else { c }
}

#[inline]
fn bit(left: char, right: char) -> usize {
    let pair = u64::from(u32::from(left)) << 32 | u64::from(u32::from(right));
    (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_inserted_pairs_with_few_false_positives() {
        let mut joints = Joints::new();
        for (left, right) in
            [("xa", "by"), ("▁", "▁▁"), ("é", "▁"), ("a", "\n"), ("\n", "é"), ("\n", "\n")]
        {
            joints.insert(left, right);
        }
        for (left, right) in
            [('a', 'b'), ('▁', '▁'), (' ', '▁'), (' ', ' '), ('é', ' '), ('é', '▁'), ('\n', '\n')]
        {
            assert!(joints.may_join(left, right), "{left:?} {right:?}");
        }
        for (left, right) in
            [('b', 'a'), ('a', '\n'), ('\n', 'é'), ('é', '\n'), (' ', 'é'), ('a', ' '), ('ë', ' ')]
        {
            assert!(!joints.may_join(left, right), "{left:?} {right:?}");
        }
    }
}
