//! The CPU reference of attention.

use super::mask::Visible;
use crate::{
    cpu::{
        dot,
        simd::{Kernel, Lanes, add_scaled_in, dot_in, run},
    },
    graph::Type,
    ops::sequences::RowPlaces,
    threads::for_pieces,
};

/// Normed and rotated queries, and the keys and values they see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference<'a> {
    pub(super) q: &'a [f32],
    /// Query heads per token.
    pub(super) heads: usize,
    pub(super) k: &'a [f32],
    pub(super) v: &'a [f32],
    kv_heads: usize,
    pub(super) width: usize,
    visible: Visible<'a>,
    places: RowPlaces<'a>,
}

impl<'a> Reference<'a> {
    /// Queries with `heads` heads over keys and values, or KV caches, of the type `kv`.
    pub(super) fn new(
        (q, heads): (&'a [f32], usize),
        (k, v, kv): (&'a [f32], &'a [f32], &Type),
        (visible, places): (Visible<'a>, RowPlaces<'a>),
    ) -> Self {
        let &[_, kv_heads, width] = kv.shape.dims() else {
            unreachable!("infer has checked the shapes")
        };
        Self { q, heads, k, v, kv_heads, width, visible, places }
    }

    /// Computes the attention of the first `live` tokens; zeros for the others.
    pub(super) fn attend(&self, live: usize, out: &mut [f32]) {
        out.fill(0.0);
        let live = (live * self.heads).min(self.q.len() / self.width);
        let row = |weights: &mut Vec<f32>, row: usize, out: &mut [f32]| {
            run(Row { reference: self, row, weights, out });
        };
        let most_keys = (0..live).map(|row| self.keys(row).len() as u64).max().unwrap_or(0);
        let out = &mut out[..live * self.width];
        for_pieces(out, self.width, 2 * out.len() as u64 * most_keys, Vec::new, row);
    }

    /// The key positions that a row of queries sees; rows are ordered by token, then by head.
    pub(super) fn keys(&self, row: usize) -> std::ops::Range<usize> {
        let token = row / self.heads;
        self.visible.keys(token, self.places.position(token))
    }

    /// Scores of a row with the keys it sees.
    pub(super) fn scores(&self, row: usize) -> impl Iterator<Item = f32> {
        self.keys(row).map(move |key| dot(self.head(self.q, row), self.key(row, key)))
    }

    /// A row of a tensor that is shaped like the queries.
    pub(super) fn head<'n>(&self, values: &'n [f32], row: usize) -> &'n [f32] {
        &values[row * self.width..][..self.width]
    }

    pub(super) fn key(&self, row: usize, key: usize) -> &'a [f32] {
        &self.k[self.kv_at(row, key)..][..self.width]
    }

    pub(super) fn value(&self, row: usize, key: usize) -> &'a [f32] {
        &self.v[self.kv_at(row, key)..][..self.width]
    }

    /// The offset of the key or value at a position, for the kv head of a row.
    pub(super) fn kv_at(&self, row: usize, key: usize) -> usize {
        let kv_head = row % self.heads / (self.heads / self.kv_heads);
        (self.places.slot(row / self.heads, key) * self.kv_heads + kv_head) * self.width
    }
}

fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|weight| *weight /= sum);
}

/// The attention of one row of queries.
struct Row<'a, 'b> {
    reference: &'a Reference<'b>,
    row: usize,
    weights: &'a mut Vec<f32>,
    out: &'a mut [f32],
}

impl Kernel for Row<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self { reference, row, weights, out } = self;
        let (q, keys) = (reference.head(reference.q, row), reference.keys(row));
        weights.clear();
        for key in keys.clone() {
            weights.push(dot_in(lanes, q, reference.key(row, key)));
        }
        softmax(weights);
        for (key, weight) in keys.zip(weights) {
            add_scaled_in(lanes, out, *weight, reference.value(row, key));
        }
    }
}
