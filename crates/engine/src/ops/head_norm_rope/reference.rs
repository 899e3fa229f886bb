//! The CPU reference of head norms, RoPE and KV cache writes.

use super::types::{HeadForm, QkvRope};
use crate::{
    cpu::{CpuCall, dot},
    graph::Type,
    ops::sequences::RowPlaces,
};

impl HeadForm {
    /// One head of queries or keys: the norm, then each pair rotated by its cosine and sine.
    pub(crate) fn query(&self, x: &[f32], weight: &[f32], rope: &[f32], y: &mut [f32]) {
        self.rotated(x, weight, rope, 1, y);
    }

    /// One head with positions of several axes.
    pub(super) fn rotated(
        &self,
        x: &[f32],
        weight: &[f32],
        rope: &[f32],
        axes: usize,
        y: &mut [f32],
    ) {
        let norm = self.qk_norm.then_some((weight, self.eps));
        norm_rope_pairs(x, norm, rope, self.stride(x.len(), axes), y);
    }

    /// One head of values.
    pub(crate) fn value(&self, x: &[f32], y: &mut [f32]) {
        let scale = if self.v_norm { norm_scale(x, self.eps) } else { 1.0 };
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * scale);
    }
}

fn norm_scale(x: &[f32], eps: f32) -> f32 {
    let mean = dot(x, x) / x.len() as f32;
    1.0 / (mean + eps).sqrt()
}

/// The norm of a head with its weight and `eps`, if it has one, and the rotation of elements that are `stride` apart.
fn norm_rope_pairs(
    x: &[f32],
    norm: Option<(&[f32], f32)>,
    rope: &[f32],
    stride: usize,
    y: &mut [f32],
) {
    let scale = norm.map_or(1.0, |(_, eps)| norm_scale(x, eps));
    let normed = |j: usize| x[j] * scale * norm.map_or(1.0, |(weight, _)| weight[j]);
    for i in 0..x.len() / 2 {
        let first = i / stride * 2 * stride + i % stride;
        let (a, b) = (normed(first), normed(first + stride));
        let (cos, sin) = (rope[2 * i], rope[2 * i + 1]);
        y[first] = a * cos - b * sin;
        y[first + stride] = a * sin + b * cos;
    }
}

pub(crate) fn assert_table(rope: &Type, t: usize, width: usize) {
    assert_eq!(rope.shape.dims(), [t, width / 2, 2], "the table of {t} tokens, heads of {width}");
}

/// Stores keys and values in their caches; `inputs` are indices of the op's inputs, in the order of [`KvStoreInputs`].
pub(crate) fn store_heads(op: &QkvRope, inputs: [usize; 6], call: &CpuCall<'_>) {
    let [k, v, k_norm, rope, k_cache, v_cache] = inputs;
    let (width, cache) = (op.width, &call.input(k_cache).shape);
    let (slots, row) = (cache.dims()[0], cache.dims()[1] * width);
    let (raw_k, raw_v) = (call.f32(k), call.f32(v));
    let (k_norm, rope) = (call.decoded(k_norm), call.f32(rope));
    let sequences = call.sequences(op.paging);
    let sequences = sequences.as_ref().map(|(paging, words, ty)| (*paging, &words[..], *ty));
    let places = RowPlaces::new(call.step, slots, sequences);
    let mut made = vec![0.0; width];
    for token in 0..(call.step.count as usize).min(rope.len() / width) {
        let slot = places.slot(token, places.position(token));
        let k = op.k.of(&raw_k, call.input(k), token).chunks_exact(width);
        let v = op.v.of(&raw_v, call.input(v), token).chunks_exact(width);
        for (at, (k, v)) in (0..row).step_by(width).zip(k.zip(v)) {
            op.form.query(k, &k_norm, &rope[token * width..][..width], &mut made);
            call.store(k_cache, slot * row + at, &made);
            op.form.value(v, &mut made);
            call.store(v_cache, slot * row + at, &made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeadForm, RopePairs};

    #[test]
    fn pairs_are_half_a_head_apart_and_have_separate_angles() {
        let (x, weight) = ([1.0, 2.0, 2.0, 4.0], [1.0, 1.0, 2.0, 1.0]);
        let mut y = [0.0; 4];
        // The first pair rotates by a right angle, the second not at all.
        HeadForm::from(0.0).query(&x, &weight, &[0.0, 1.0, 1.0, 0.0], &mut y);
        let want = [-1.6, 0.8, 0.4, 1.6];
        assert!(y.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{y:?}");
    }

    #[test]
    fn each_axis_of_2d_rope_rotates_its_half() {
        let mut y = [0.0; 4];
        // A right angle along the first axis, none along the second: in heads of four, pairs are adjacent.
        HeadForm::from(0.0).rotated(&[1.0; 4], &[1.0; 4], &[0.0, 1.0, 1.0, 0.0], 2, &mut y);
        assert_eq!(y, [-1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn adjacent_pairs_and_no_norms() {
        let form = HeadForm { qk_norm: false, v_norm: false, pairs: RopePairs::Adjacent, eps: 1.0 };
        let (x, mut y) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
        form.query(&x, &[9.0; 4], &[0.0, 1.0, 1.0, 0.0], &mut y);
        assert_eq!(y, [-2.0, 1.0, 3.0, 4.0]);
        form.value(&x, &mut y);
        assert_eq!(y, x);
    }
}
