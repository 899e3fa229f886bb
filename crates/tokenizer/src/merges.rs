//! Which two neighbouring pieces become one, and in which order.

use crate::{
    hash::Seed,
    merge_list::{ListedMerge, MergeList},
};

/// A merge that applies to a pair of pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge {
    /// Lower goes first; of equal ones the leftmost.
    pub(crate) rank: u32,
    /// The piece the two become.
    pub(crate) merged: u32,
}

/// The rank of no merge: one more than a list can have.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// Merges by pair of ids.
#[derive(Debug)]
pub(crate) struct Merges {
    seed: Seed,
    /// Open addressing, at most half full.
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    left: u32,
    right: u32,
    merge: Merge,
}

impl Merges {
    /// Of two merges of the same pair the first counts.
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

    /// The merge of two neighbours; its rank is [`NO_RANK`] if there is none.
    #[inline]
    pub(crate) fn get(&self, left: u32, right: u32) -> Merge {
        self.slots[self.place(left, right)].merge
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
