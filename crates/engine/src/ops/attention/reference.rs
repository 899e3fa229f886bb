//! The definition of attention over caches.

use super::Attention;
use crate::{
    cpu::{add_scaled, dot},
    graph::{Step, Type},
    threads::for_pieces,
};

/// Normed and turned queries, and what they look into.
pub(super) struct Reference<'a> {
    pub(super) q: &'a [f32],
    pub(super) heads: usize,
    pub(super) k: &'a [f32],
    pub(super) v: &'a [f32],
    /// Type of both caches.
    pub(super) cache: &'a Type,
    /// Where blocks end, per token.
    pub(super) blocks: Option<&'a [u32]>,
    /// What each token sees, where it is told.
    pub(super) spans: Option<&'a [u32]>,
    pub(super) step: &'a Step,
}

impl Reference<'_> {
    pub(super) fn attend(&self, op: &Attention, out: &mut [f32]) {
        let &[slots, kv_heads, width] = self.cache.shape.dims() else {
            unreachable!("infer has checked the shapes")
        };
        out.fill(0.0);
        let live = (self.step.count as usize * self.heads).min(self.q.len() / width);
        let row = |weights: &mut Vec<f32>, place: usize, out: &mut [f32]| {
            let (q, keys) = (&self.q[place * width..][..width], self.keys(op, place / self.heads));
            let kv_head = place % self.heads / (self.heads / kv_heads);
            let at = |key: usize| (key % slots * kv_heads + kv_head) * width;
            weights.clear();
            weights.extend(keys.clone().map(|key| dot(q, &self.k[at(key)..][..width])));
            softmax(weights);
            for (key, weight) in keys.zip(weights) {
                add_scaled(out, *weight, &self.v[at(key)..][..width]);
            }
        };
        let last = (self.step.position + self.step.count) as usize;
        let seen = (last - op.first_key(last)) as u64;
        let out = &mut out[..live * width];
        for_pieces(out, width, 2 * out.len() as u64 * seen, Vec::new, row);
    }

    /// What a token sees.
    fn keys(&self, op: &Attention, token: usize) -> std::ops::Range<usize> {
        if let Some(spans) = self.spans {
            return spans[token * 2] as usize..spans[token * 2 + 1] as usize;
        }
        let first = self.step.position as usize;
        let position = first + token;
        let block = self.blocks.map_or(0, |blocks| blocks[token] as usize);
        // A block that reaches beyond the live tokens ends with them.
        let end = block.min(first + self.step.count as usize).max(position + 1);
        op.first_key(position)..end
    }
}

fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|weight| *weight /= sum);
}
