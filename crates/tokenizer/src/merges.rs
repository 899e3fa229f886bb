//! The merge table: which adjacent pieces are joined, and in which order.

use crate::{
    hash::Seed,
    merge_list::{ListedMerge, MergeList},
};

/// A merge that applies to a pair of pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge {
    /// Lower ranks are applied first; of equal ranks the leftmost.
    pub(crate) rank: u32,
    /// The merged piece.
    pub(crate) merged: u32,
}

/// The rank that means "no merge"; greater than any rank.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// Merges by pair of ids.
#[derive(Debug)]
pub(crate) struct Merges {
    seed: Seed,
    /// Open addressing, load factor at most 1/2.
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    left: u32,
    right: u32,
    merge: Merge,
}

impl Merges {
    /// If a pair occurs twice, the first merge wins.
    pub(crate) fn new(list: &MergeList) -> Self {
        let empty = Slot { left: 0, right: 0, merge: Merge { rank: NO_RANK, merged: 0 } };
        let slots = vec![empty; (list.merges.len() * 2).next_power_of_two()];
        let mut merges = Self { seed: Seed::random(), slots };
        for &ListedMerge { left, right, merged, rank } in &list.merges {
            let place = merges.place(left, right);
            if merges.slots[place].merge.rank == NO_RANK {
                merges.slots[place] = Slot { left, right, merge: Merge { rank, merged } };
            }
        }
        merges
    }

    /// The merge of two adjacent pieces; its rank is [`NO_RANK`] if there is none.
    #[inline]
    pub(crate) fn get(&self, left: u32, right: u32) -> Merge {
        self.slots[self.place(left, right)].merge
    }

    /// The slot of a pair, or the empty slot where it would be inserted.
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
