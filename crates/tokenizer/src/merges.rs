//! The merge list: which two neighbouring pieces become one, and in which order.

use crate::{TokenizerError, hash::Seed, kind::Kind, texts::Texts};

/// A merge that applies to a pair of pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge {
    /// Place in the list; lower goes first.
    pub(crate) rank: u32,
    /// The piece the two become.
    pub(crate) merged: u32,
}

/// Merges by pair of ids, and which characters can ever be joined.
#[derive(Debug)]
pub(crate) struct Merges {
    seed: Seed,
    /// Open addressing, at most half full.
    slots: Vec<Slot>,
    joints: Joints,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    left: u32,
    right: u32,
    merge: Merge,
}

/// The rank of an empty slot: one more than a list can have.
pub(crate) const NO_RANK: u32 = u32::MAX;

impl Merges {
    /// Resolves the texts of `list`. Of two merges of the same pair the first counts.
    pub(crate) fn new(
        list: &[&str],
        texts: &Texts,
        kinds: &[Kind],
    ) -> Result<Self, TokenizerError> {
        let count = list.len();
        if u32::try_from(count).is_err() {
            return Err(TokenizerError::TooMany { array: "merges", count });
        }
        let mut merges = Self { seed: Seed::random(), slots: Vec::new(), joints: Joints::new() };
        let mut resolved = Vec::with_capacity(count);
        let mut joined = 0;
        for (index, text) in list.iter().enumerate() {
            let (left, right) =
                halves(text).ok_or_else(|| TokenizerError::malformed_merge(index, text))?;
            let resolve = |piece: &str| resolve(piece, index, texts, kinds);
            joined = match next_joined(joined, left, right, texts) {
                Some(id) if kinds[id as usize] == Kind::Normal => id,
                _ => resolve(&[left, right].concat())?,
            };
            let merge = Merge { rank: index as u32, merged: joined };
            resolved.push(Slot { left: resolve(left)?, right: resolve(right)?, merge });
            merges.joints.insert(left, right);
        }
        merges.fill(resolved);
        Ok(merges)
    }

    fn fill(&mut self, resolved: Vec<Slot>) {
        let empty = Slot { left: 0, right: 0, merge: Merge { rank: NO_RANK, merged: 0 } };
        self.slots = vec![empty; (resolved.len() * 2).next_power_of_two()];
        for slot in resolved {
            self.insert(slot);
        }
    }

    fn insert(&mut self, new: Slot) {
        let place = self.place(new.left, new.right);
        if self.slots[place].merge.rank == NO_RANK {
            self.slots[place] = new;
        }
    }

    /// The merge of two neighbours; its rank is [`NO_RANK`] if there is none.
    #[inline]
    pub(crate) fn get(&self, left: u32, right: u32) -> Merge {
        self.slots[self.place(left, right)].merge
    }

    /// Whether a merge may join a piece that ends in `left` with one that begins with `right`.
    #[inline]
    pub(crate) fn may_join(&self, left: char, right: char) -> bool {
        // Newlines are a word of their own by definition, whatever the list says.
        (left == '\n') == (right == '\n') && self.joints.contains(left, right)
    }

    /// The slot of a pair: its own, or the empty one where it belongs.
    #[inline]
    fn place(&self, left: u32, right: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = self.seed.pair(left, right) as usize & mask;
        loop {
            let slot = &self.slots[place];
            if (slot.left == left && slot.right == right) || slot.merge.rank == NO_RANK {
                return place;
            }
            place = (place + 1) & mask;
        }
    }
}

/// The normal token with the text `piece`.
fn resolve(
    piece: &str,
    index: usize,
    texts: &Texts,
    kinds: &[Kind],
) -> Result<u32, TokenizerError> {
    let id = texts.id_of(piece.as_bytes());
    let id = id.ok_or_else(|| TokenizerError::unknown_piece(index, piece))?;
    match kinds[id as usize] {
        Kind::Normal => Ok(id),
        _ => Err(TokenizerError::special_piece(index, piece)),
    }
}

/// The token that `left` and `right` make, if it is `last` or the one after it.
///
/// Lists are written token by token, for each all the ways to make it, so that nearly every search ends here.
fn next_joined(last: u32, left: &str, right: &str, texts: &Texts) -> Option<u32> {
    let is_joined = |id| texts.get(id)?.strip_prefix(left).filter(|rest| *rest == right);
    [last, last + 1].into_iter().find(|&id| is_joined(id).is_some())
}

/// The two pieces of "left right". A piece has no space inside, but one could be the first character.
fn halves(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let (left, right) = merge.split_at(first + merge[first..].find(' ')?);
    let right = &right[1..];
    (!right.is_empty()).then_some((left, right))
}

/// The pairs of characters that stand on the two sides of some merge, as a set that may answer yes too often.
///
/// Between any other two characters text can be cut before merging: the first merge to cross that
/// place would have to join a piece ending in the one with a piece beginning with the other.
#[derive(Debug)]
struct Joints(Vec<u64>);

/// 128 KiB: Gemma's list has 33,695 pairs, so three in a hundred others are taken for one.
const JOINT_BITS: u32 = 20;

impl Joints {
    fn new() -> Self {
        Self(vec![0; 1 << (JOINT_BITS - 6)])
    }

    fn insert(&mut self, left: &str, right: &str) {
        if let (Some(left), Some(right)) = (left.chars().next_back(), right.chars().next()) {
            let bit = Self::bit(left, right);
            self.0[bit / 64] |= 1 << (bit % 64);
        }
    }

    #[inline]
    fn contains(&self, left: char, right: char) -> bool {
        let bit = Self::bit(left, right);
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    #[inline]
    fn bit(left: char, right: char) -> usize {
        let pair = u64::from(u32::from(left)) << 32 | u64::from(u32::from(right));
        (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - JOINT_BITS)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_is_cut_at_the_first_space_after_its_first_character() {
        for (merge, want) in [
            ("a b", Some(("a", "b"))),
            ("▁ ▁", Some(("▁", "▁"))),
            ("\n \n\n", Some(("\n", "\n\n"))),
            ("  b", Some((" ", "b"))),
            ("a b c", Some(("a", "b c"))),
            ("a  ", Some(("a", " "))),
            ("ab", None),
            ("a ", None),
            (" b", None),
            (" ", None),
            ("", None),
        ] {
            assert_eq!(halves(merge), want, "{merge:?}");
        }
    }
}
