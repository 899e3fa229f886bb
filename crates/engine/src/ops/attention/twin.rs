//! The definition of attention over caches.

use super::{Attention, dot};
use crate::graph::{Step, Type};

/// Normed and turned queries, and what they look into.
pub(super) struct Twin<'a> {
    pub(super) q: &'a [f32],
    pub(super) heads: usize,
    pub(super) k: &'a [f32],
    pub(super) v: &'a [f32],
    /// Type of both caches.
    pub(super) cache: &'a Type,
    /// Where blocks end, per token.
    pub(super) blocks: Option<&'a [u32]>,
    pub(super) step: &'a Step,
}

impl Twin<'_> {
    pub(super) fn attend(&self, op: &Attention, out: &mut [f32]) {
        let &[slots, kv_heads, width] = self.cache.shape.dims() else {
            unreachable!("infer has checked the shapes")
        };
        out.fill(0.0);
        let heads = self.q.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for (place, (q, out)) in heads.enumerate().take(self.step.count as usize * self.heads) {
            let keys = self.keys(op, place / self.heads);
            let kv_head = place % self.heads / (self.heads / kv_heads);
            let at = |key: usize| (key % slots * kv_heads + kv_head) * width;
            let score = |key: usize| dot(q, &self.k[at(key)..][..width]);
            let mut weights: Vec<f32> = keys.clone().map(score).collect();
            softmax(&mut weights);
            for (key, weight) in keys.zip(weights) {
                let v = &self.v[at(key)..][..width];
                out.iter_mut().zip(v).for_each(|(out, v)| *out += weight * v);
            }
        }
    }

    /// What a token sees.
    fn keys(&self, op: &Attention, token: usize) -> std::ops::Range<usize> {
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
