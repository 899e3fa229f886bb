//! Byte-pair encoding of plain text: cut into words, join neighbours by rank, fall back to bytes.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    chars::Chars,
    joints::Joints,
    merges::{Merge, Merges, NO_RANK},
};

/// Everything needed to encode plain text.
#[derive(Debug)]
pub(crate) struct Bpe {
    /// Normal tokens of one character.
    pub(crate) chars: Chars,
    pub(crate) merges: Merges,
    pub(crate) joints: Joints,
    /// The token of each byte, the unknown token where there is none.
    pub(crate) bytes: [u32; 256],
}

/// Encodes pieces of plain text one after the other.
#[derive(Debug)]
pub(crate) struct Encoder<'t> {
    bpe: &'t Bpe,
    word: Vec<Symbol>,
    queue: BinaryHeap<Reverse<(u32, usize)>>,
    /// The ids so far.
    pub(crate) ids: Vec<u32>,
}

/// A piece of the word at hand.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: u32,
    /// The merge with the piece to the right.
    merge: Merge,
}

const NO_MERGE: Merge = Merge { rank: NO_RANK, merged: 0 };

/// Longest word that is scanned for its best merge; a longer one keeps its merges in a queue.
const SCANNED: usize = 32;

impl<'t> Encoder<'t> {
    pub(crate) fn new(bpe: &'t Bpe) -> Self {
        Self { bpe, word: Vec::new(), queue: BinaryHeap::new(), ids: Vec::new() }
    }

    /// Appends the ids of `text`, in which nothing is special.
    pub(crate) fn encode(&mut self, text: &str) {
        let mut before = None;
        for c in text.chars() {
            let c = if c == ' ' { '▁' } else { c };
            if before.is_some_and(|before| !self.bpe.joints.may_join(before, c)) {
                self.finish_word();
            }
            match self.bpe.chars.get(c) {
                Some(id) => self.word.push(Symbol { id, merge: NO_MERGE }),
                None => {
                    self.finish_word();
                    let mut buffer = [0; 4];
                    let bytes = c.encode_utf8(&mut buffer).bytes();
                    self.ids.extend(bytes.map(|byte| self.bpe.bytes[usize::from(byte)]));
                }
            }
            before = Some(c);
        }
        self.finish_word();
    }

    fn finish_word(&mut self) {
        match self.word.len() {
            0 => return,
            1 => {}
            2..=SCANNED => self.merge_by_scanning(),
            _ => self.merge_by_queue(),
        }
        self.ids.extend(self.word.drain(..).map(|symbol| symbol.id));
    }

    fn find_merges(&mut self) {
        for i in 1..self.word.len() {
            self.word[i - 1].merge = self.bpe.merges.get(self.word[i - 1].id, self.word[i].id);
        }
    }

    /// The lowest rank first, the leftmost of equals, until none is left.
    fn merge_by_scanning(&mut self) {
        self.find_merges();
        let word = &mut self.word;
        while let Some((at, merge)) = lowest(word) {
            word[at].id = merge.merged;
            word.remove(at + 1);
            word[at].merge = match word.get(at + 1) {
                Some(next) => self.bpe.merges.get(merge.merged, next.id),
                None => NO_MERGE,
            };
            if at > 0 {
                word[at - 1].merge = self.bpe.merges.get(word[at - 1].id, merge.merged);
            }
        }
    }

    /// The same in n log n steps.
    fn merge_by_queue(&mut self) {
        self.find_merges();
        let word = &mut self.word;
        let mut links = Links::new(word.len());
        let ranks = word.iter().enumerate().map(|(at, symbol)| (symbol.merge.rank, at));
        self.queue.extend(ranks.filter(|(rank, _)| *rank != NO_RANK).map(Reverse));
        while let Some(Reverse((rank, at))) = self.queue.pop() {
            let merge = word[at].merge;
            // A rank names a pair: another one means that a neighbour has changed since.
            if merge.rank != rank {
                continue;
            }
            word[links.remove_after(at)].merge = NO_MERGE;
            word[at] = Symbol { id: merge.merged, merge: NO_MERGE };
            let after = (links.next[at] < word.len()).then_some((at, links.next[at]));
            let before = (at > 0).then(|| (links.previous[at], at));
            for (left, right) in [before, after].into_iter().flatten() {
                let merge = self.bpe.merges.get(word[left].id, word[right].id);
                word[left].merge = merge;
                if merge.rank != NO_RANK {
                    self.queue.push(Reverse((merge.rank, left)));
                }
            }
        }
        let mut kept = 0;
        let mut at = 0;
        while at < word.len() {
            word[kept] = word[at];
            kept += 1;
            at = links.next[at];
        }
        word.truncate(kept);
    }
}

/// The first symbol of lowest rank.
#[inline]
fn lowest(word: &[Symbol]) -> Option<(usize, Merge)> {
    let (at, symbol) = word.iter().enumerate().min_by_key(|(_, symbol)| symbol.merge.rank)?;
    (symbol.merge.rank != NO_RANK).then_some((at, symbol.merge))
}

/// The neighbours of symbols that are still there.
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

    /// Takes out the symbol after `at` and returns its place.
    fn remove_after(&mut self, at: usize) -> usize {
        let gone = self.next[at];
        let next = self.next[gone];
        self.next[at] = next;
        if let Some(previous) = self.previous.get_mut(next) {
            *previous = at;
        }
        gone
    }
}
