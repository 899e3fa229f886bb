//! Where text may be cut before merging.

/// The pairs of characters that stand on the two sides of some merge, as a set that may answer yes too often.
///
/// Between any other two characters nothing is ever joined: the first merge across that place would have to
/// join a piece that ends in the one with a piece that begins with the other.
/// A space and `▁` are the same here, as they are to the vocabulary.
#[derive(Debug)]
pub(crate) struct Joints {
    /// For each character below 128 the ones it can be joined with.
    ascii: [u128; 128],
    /// All other pairs, by hash.
    others: Vec<u64>,
}

/// 128 KiB: Gemma's list has 33,695 pairs, so three in a hundred others are taken for one.
const BITS: u32 = 20;

impl Joints {
    pub(crate) fn new() -> Self {
        Self { ascii: [0; 128], others: vec![0; 1 << (BITS - 6)] }
    }

    /// Adds the joint between two pieces.
    pub(crate) fn insert(&mut self, left: &str, right: &str) {
        let (Some(left), Some(right)) = (left.chars().next_back(), right.chars().next()) else {
            return;
        };
        let (left, right) = (spaced(left), spaced(right));
        // Newlines are a word of their own by definition, whatever the list says.
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
    fn joins_what_was_put_in_and_little_else() {
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
