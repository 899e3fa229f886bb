//! The tokens still in the running, with their logits and the order they stand in.

use std::cmp::Ordering;

/// Logits looked at together when most of them are too small to matter.
const CHUNK: usize = 64;

/// A token and its logit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Token id.
    pub id: u32,
    /// Its logit; finite inside [`Candidates`].
    pub logit: f32,
}

/// The order candidates stand in; the draw walks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Token id ascending.
    ById,
    /// Logit descending, among equals the lower id first.
    ByLogit,
    /// As the typical filter left them.
    Typical,
}

/// The tokens still in the running.
///
/// All logits are finite: a token whose logit is −∞ or NaN never becomes a candidate, and +∞ counts as the
/// largest finite number.
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
            // Without an early exit, so that the compiler compares several at once.
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

    /// The order they stand in.
    pub fn order(&self) -> Order {
        self.order
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True when no token can be chosen.
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

    /// The `k` largest logits, sorted, without touching the candidates.
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

    /// The candidate that comes first by logit.
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

    /// Keeps the sorted prefix whose length `find` tells, everything if it never does. `find` sees the sorted
    /// head of the candidates and answers none when it must see more.
    ///
    /// Prefixes are nearly always short: sorting a growing head spares sorting the vocabulary.
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

    /// Keeps those that `keep` accepts; the order stays.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Candidate) -> bool) {
        self.items.retain(keep);
    }

    /// Drops the first `n` candidates.
    pub(crate) fn drop_first(&mut self, n: usize) {
        self.items.drain(..n.min(self.items.len()));
    }

    /// Replaces the candidates by some of themselves in another order.
    pub(crate) fn replace(&mut self, items: Vec<Candidate>, order: Order) {
        self.items = items;
        self.order = order;
    }

    /// Changes every logit by a function that keeps their order.
    pub(crate) fn map_logits(&mut self, change: impl Fn(f32) -> f32) {
        for candidate in &mut self.items {
            candidate.logit = change(candidate.logit);
        }
    }
}

/// Larger logits first, among equals the lower id. Logits are numbers, so `partial_cmp` always answers.
fn descending(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.partial_cmp(&a.logit).unwrap_or(Ordering::Equal).then(a.id.cmp(&b.id))
}

fn usable((id, logit): (u32, &f32)) -> Option<Candidate> {
    (*logit > f32::NEG_INFINITY).then_some(Candidate { id, logit: logit.min(f32::MAX) })
}

/// Collects the `k` largest of candidates that come by ascending id.
///
/// A buffer of `2k` takes what beats the k-th best so far and is halved by selection when full: nearly every
/// token of a large vocabulary costs one comparison.
struct Largest {
    k: usize,
    best: Vec<Candidate>,
    /// What is not above this cannot be among the `k` largest.
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
