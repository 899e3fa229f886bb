//! The tokens that can still be chosen, with their logits and their order.

use std::cmp::Ordering;

/// Logits compared at once with the smallest logit kept so far; most chunks have none above it.
const CHUNK: usize = 64;

/// A token and its logit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Token id.
    pub id: u32,
    /// Its logit; finite inside [`Candidates`].
    pub logit: f32,
}

/// The order of candidates; the draw accumulates in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Token id ascending.
    ById,
    /// Logit descending, among equals the lower id first.
    ByLogit,
    /// The order of the typical filter: distance from the entropy ascending.
    Typical,
}

/// The tokens that can still be chosen.
///
/// All logits are finite: a token whose logit is −∞ or NaN is no candidate, and +∞ is clamped to the largest
/// finite value.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates {
    items: Vec<Candidate>,
    order: Order,
}

impl Candidates {
    /// Every token of the vocabulary that can be chosen, by id.
    pub fn from_logits(logits: &[f32]) -> Self {
        Self { items: (0u32..).zip(logits).filter_map(usable).collect(), order: Order::ById }
    }

    /// The `k` tokens with the largest logits, sorted; the same as [`Self::from_logits`] and then
    /// [`Self::keep_largest`] without listing the whole vocabulary.
    pub fn largest_of(logits: &[f32], k: usize) -> Self {
        let mut largest = Largest::new(k);
        for (first_id, chunk) in (0u32..).step_by(CHUNK).zip(logits.chunks(CHUNK)) {
            // Without an early exit, so that the compiler vectorises the comparison.
            if chunk.iter().fold(false, |any, logit| any | (*logit > largest.floor)) {
                (first_id..).zip(chunk).filter_map(usable).for_each(|c| largest.push(c));
            }
        }
        Self { items: largest.finish(), order: Order::ByLogit }
    }

    /// The candidates in their order.
    pub fn as_slice(&self) -> &[Candidate] {
        &self.items
    }

    /// Their order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no token can be chosen.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Token ids in order.
    pub fn ids(&self) -> Vec<u32> {
        self.items.iter().map(|c| c.id).collect()
    }

    /// Probability of each candidate, in order.
    pub fn probabilities(&self) -> Vec<f32> {
        let softmax = super::softmax::Softmax::of(&self.items);
        self.items.iter().map(|c| softmax.p(c.logit) as f32).collect()
    }

    /// Sorts by logit descending, unless they already are.
    pub fn sort(&mut self) {
        if self.order != Order::ByLogit {
            self.items.sort_unstable_by(descending);
            self.order = Order::ByLogit;
        }
    }

    /// Keeps the `k` largest logits (all, if there are fewer), sorted.
    pub fn keep_largest(&mut self, k: usize) {
        if self.order == Order::ById {
            self.items = self.largest(k);
            self.order = Order::ByLogit;
        } else {
            self.sort();
            self.items.truncate(k);
        }
    }

    /// The `k` largest logits, sorted; the candidates are unchanged.
    pub(crate) fn largest(&self, k: usize) -> Vec<Candidate> {
        match self.order {
            Order::ByLogit => self.items[..k.min(self.items.len())].to_vec(),
            Order::ById => {
                let mut largest = Largest::new(k);
                self.items.iter().for_each(|candidate| largest.push(*candidate));
                largest.finish()
            }
            Order::Typical => {
                let mut sorted = self.clone();
                sorted.keep_largest(k);
                sorted.items
            }
        }
    }

    /// The candidate with the largest logit; of equal ones the lowest id.
    pub(crate) fn best(&self) -> Option<Candidate> {
        match self.order {
            Order::ByLogit => self.items.first().copied(),
            _ => self.items.iter().copied().reduce(
                |a, b| {
                    if descending(&a, &b).is_le() { a } else { b }
                },
            ),
        }
    }

    /// Keeps the sorted prefix of the length that `find` returns. `find` gets the first candidates in sorted order and
    /// returns `None` if it needs more; if it never returns a length, all are kept.
    ///
    /// Prefixes are nearly always short, so sorting a growing head avoids sorting the vocabulary.
    pub(crate) fn keep_prefix(&mut self, find: impl Fn(&[Candidate]) -> Option<usize>) {
        let mut seen = 256;
        loop {
            let mut head = self.largest(seen);
            let found = find(&head);
            if found.is_some() || head.len() == self.items.len() {
                head.truncate(found.unwrap_or(head.len()));
                self.items = head;
                self.order = Order::ByLogit;
                return;
            }
            seen = seen.saturating_mul(8);
        }
    }

    /// Keeps the candidates that `keep` accepts, in the same order.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Candidate) -> bool) {
        self.items.retain(keep);
    }

    /// Drops the first `n` candidates.
    pub(crate) fn drop_first(&mut self, n: usize) {
        self.items.drain(..n.min(self.items.len()));
    }

    /// Replaces the candidates by a subset of them in another order.
    pub(crate) fn replace(&mut self, items: Vec<Candidate>, order: Order) {
        self.items = items;
        self.order = order;
    }

    /// Applies a monotonic function to every logit.
    pub(crate) fn map_logits(&mut self, change: impl Fn(f32) -> f32) {
        for candidate in &mut self.items {
            candidate.logit = change(candidate.logit);
        }
    }
}

/// Larger logits first; of equal ones the lower id. Logits are never NaN, so `partial_cmp` returns an order.
fn descending(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.partial_cmp(&a.logit).unwrap_or(Ordering::Equal).then(a.id.cmp(&b.id))
}

fn usable((id, logit): (u32, &f32)) -> Option<Candidate> {
    (*logit > f32::NEG_INFINITY).then_some(Candidate { id, logit: logit.min(f32::MAX) })
}

/// Collects the `k` largest of candidates pushed by ascending id.
///
/// Candidates above the k-th best so far go into a buffer of `2k`, which is halved by selection when full, so nearly
/// every token of a large vocabulary costs one comparison.
struct Largest {
    k: usize,
    best: Vec<Candidate>,
    /// The k-th largest logit so far; a logit not above it is skipped.
    floor: f32,
}

impl Largest {
    fn new(k: usize) -> Self {
        let floor = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { k, best: Vec::new(), floor }
    }

    fn push(&mut self, candidate: Candidate) {
        // An equal logit loses as well: its id is higher than those already kept.
        if candidate.logit <= self.floor {
            return;
        }
        self.best.push(candidate);
        if self.best.len() == self.k.saturating_mul(2) {
            let (_, last, _) = self.best.select_nth_unstable_by(self.k - 1, descending);
            self.floor = last.logit;
            self.best.truncate(self.k);
        }
    }

    fn finish(mut self) -> Vec<Candidate> {
        self.best.sort_unstable_by(descending);
        self.best.truncate(self.k);
        self.best
    }
}
