//! Where text may be cut before merging.

/// The pairs of characters that stand on the two sides of some merge, as a set that may answer yes too often.
///
/// Between any other two characters nothing is ever joined: the first merge across that place would have to
/// join a piece that ends in the one with a piece that begins with the other.
#[derive(Debug)]
pub(crate) struct Joints(Vec<u64>);

/// 128 KiB: Gemma's list has 33,695 pairs, so three in a hundred others are taken for one.
const BITS: u32 = 20;

impl Joints {
    pub(crate) fn new() -> Self {
        Self(vec![0; 1 << (BITS - 6)])
    }

    /// Adds the joint between two pieces.
    pub(crate) fn insert(&mut self, left: &str, right: &str) {
        if let (Some(left), Some(right)) = (left.chars().next_back(), right.chars().next()) {
            let bit = bit(left, right);
            self.0[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Whether a merge may join a piece that ends in `left` with one that begins with `right`.
    #[inline]
    pub(crate) fn may_join(&self, left: char, right: char) -> bool {
        let bit = bit(left, right);
        // Newlines are a word of their own by definition, whatever the list says.
        (left == '\n') == (right == '\n') && self.0[bit / 64] >> (bit % 64) & 1 == 1
    }
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
        joints.insert("xa", "by");
        joints.insert("▁", "▁▁");
        joints.insert("a", "\n");
        assert!(joints.may_join('a', 'b'));
        assert!(joints.may_join('▁', '▁'));
        assert!(!joints.may_join('a', '\n'));
        let others = ('b'..='z').filter(|&c| joints.may_join('a', c)).count();
        assert_eq!(others, 1);
    }
}
