//! BPE of one word: joins adjacent pieces, lowest rank first, the leftmost of equal ranks, until no merge applies.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::merges::{Merge, Merges, NO_RANK};

/// The pieces of a word. The allocation is reused for the next word.
#[derive(Debug, Default)]
pub(crate) struct Word {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<(u32, usize)>>,
}

#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: u32,
    /// The merge with the next piece.
    merge: Merge,
}

const NO_MERGE: Merge = Merge { rank: NO_RANK, merged: 0 };

/// The longest word whose best merge is found by a linear scan; longer words use a priority queue.
const SCANNED: usize = 32;

impl Word {
    /// Appends the token of a character.
    #[inline]
    pub(crate) fn push(&mut self, id: u32) {
        self.symbols.push(Symbol { id, merge: NO_MERGE });
    }

    /// Moves the word's ids to `ids`.
    pub(crate) fn finish(&mut self, merges: &Merges, ids: &mut Vec<u32>) {
        match self.symbols.len() {
            0..=1 => {}
            2..=SCANNED => self.merge_by_scanning(merges),
            _ => self.merge_by_queue(merges),
        }
        ids.extend(self.symbols.drain(..).map(|symbol| symbol.id));
    }

    fn find_merges(&mut self, merges: &Merges) {
        for i in 1..self.symbols.len() {
            self.symbols[i - 1].merge = merges.get(self.symbols[i - 1].id, self.symbols[i].id);
        }
    }

    fn merge_by_scanning(&mut self, merges: &Merges) {
        self.find_merges(merges);
        let symbols = &mut self.symbols;
        while let Some((at, merge)) = lowest(symbols) {
            symbols[at].id = merge.merged;
            symbols.remove(at + 1);
            symbols[at].merge = match symbols.get(at + 1) {
                Some(next) => merges.get(merge.merged, next.id),
                None => NO_MERGE,
            };
            if at > 0 {
                symbols[at - 1].merge = merges.get(symbols[at - 1].id, merge.merged);
            }
        }
    }

    /// As [`Self::merge_by_scanning`], in O(n log n).
    fn merge_by_queue(&mut self, merges: &Merges) {
        self.find_merges(merges);
        let symbols = &mut self.symbols;
        let mut links = Links::new(symbols.len());
        let ranks = symbols.iter().enumerate().map(|(at, symbol)| (symbol.merge.rank, at));
        self.queue.extend(ranks.filter(|(rank, _)| *rank != NO_RANK).map(Reverse));
        while let Some(Reverse((rank, at))) = self.queue.pop() {
            let merge = symbols[at].merge;
            // A different rank: the entry is stale, a neighbour has changed. With an equal rank it is still the best merge.
            if merge.rank != rank {
                continue;
            }
            symbols[links.remove_after(at)].merge = NO_MERGE;
            symbols[at] = Symbol { id: merge.merged, merge: NO_MERGE };
            for (left, right) in links.around(at) {
                let merge = merges.get(symbols[left].id, symbols[right].id);
                symbols[left].merge = merge;
                if merge.rank != NO_RANK {
                    self.queue.push(Reverse((merge.rank, left)));
                }
            }
        }
        let mut kept = 0;
        let mut at = 0;
        while at < symbols.len() {
            symbols[kept] = symbols[at];
            kept += 1;
            at = links.next[at];
        }
        symbols.truncate(kept);
    }
}

/// The first symbol with the lowest rank.
#[inline]
fn lowest(symbols: &[Symbol]) -> Option<(usize, Merge)> {
    let (at, symbol) = symbols.iter().enumerate().min_by_key(|(_, symbol)| symbol.merge.rank)?;
    (symbol.merge.rank != NO_RANK).then_some((at, symbol.merge))
}

/// Doubly linked list of the remaining symbols.
struct Links {
    next: Vec<usize>,
    previous: Vec<usize>,
}

impl Links {
    fn new(len: usize) -> Self {
        Self {
            next: (1..=len).collect(),
            previous: (0..len).map(|i| i.saturating_sub(1)).collect(),
        }
    }

    /// Removes the symbol after `at` and returns its index.
    fn remove_after(&mut self, at: usize) -> usize {
        let gone = self.next[at];
        let next = self.next[gone];
        self.next[at] = next;
        if let Some(previous) = self.previous.get_mut(next) {
            *previous = at;
        }
        gone
    }

    /// The adjacent pairs that contain the symbol at `at`.
    fn around(&self, at: usize) -> impl Iterator<Item = (usize, usize)> {
        let before = (at > 0).then(|| (self.previous[at], at));
        let after = (self.next[at] < self.next.len()).then(|| (at, self.next[at]));
        before.into_iter().chain(after)
    }
}
