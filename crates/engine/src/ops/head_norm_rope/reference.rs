//! The CPU reference of head norms, RoPE and KV cache writes.

use super::types::QkvRope;
use crate::{cpu::CpuCall, graph::Type, ops::sequences::RowPlaces};

/// One head: the norm, then each pair `(i, i + half)` rotated by its cosine and sine.
pub(crate) fn norm_rope(
    x: &[f32],
    weight: Option<&[f32]>,
    rope: Option<&[f32]>,
    eps: f32,
    y: &mut [f32],
) {
    norm_rope_pairs(x, weight, rope, (eps, x.len() / 2), y);
}

/// The same with another distance between the elements of a pair.
pub(super) fn norm_rope_pairs(
    x: &[f32],
    weight: Option<&[f32]>,
    rope: Option<&[f32]>,
    (eps, stride): (f32, usize),
    y: &mut [f32],
) {
    let mean = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    let normed = |j: usize| x[j] * scale * weight.map_or(1.0, |w| w[j]);
    for i in 0..x.len() / 2 {
        let first = i / stride * 2 * stride + i % stride;
        let (a, b) = (normed(first), normed(first + stride));
        let (cos, sin) = rope.map_or((1.0, 0.0), |rope| (rope[2 * i], rope[2 * i + 1]));
        y[first] = a * cos - b * sin;
        y[first + stride] = a * sin + b * cos;
    }
}

pub(crate) fn assert_table(rope: &Type, t: usize, width: usize) {
    assert_eq!(rope.shape.dims(), [t, width / 2, 2], "the table of {t} tokens, heads of {width}");
}

/// Stores keys and values in their caches; `inputs` are the operation's inputs by number, in the order of [`KvStoreInputs`].
pub(crate) fn store_heads(op: &QkvRope, inputs: [usize; 6], call: &CpuCall<'_>) {
    let [k, v, k_norm, rope, k_cache, v_cache] = inputs;
    let (width, cache) = (op.width, &call.input(k_cache).shape);
    let (slots, row) = (cache.dims()[0], cache.dims()[1] * width);
    let (raw_k, raw_v) = (call.f32(k), call.f32(v));
    let (k_norm, rope) = (call.numbers(k_norm), call.f32(rope));
    let sequences = call.sequences(op.paging);
    let sequences = sequences.as_ref().map(|(paging, words, ty)| (*paging, &words[..], *ty));
    let places = RowPlaces::new(call.step, slots, sequences);
    let mut made = vec![0.0; width];
    for token in 0..(call.step.count as usize).min(rope.len() / width) {
        let slot = places.slot(token, places.position(token));
        let k = op.k.of(&raw_k, call.input(k), token).chunks_exact(width);
        let v = op.v.of(&raw_v, call.input(v), token).chunks_exact(width);
        for (at, (k, v)) in (0..row).step_by(width).zip(k.zip(v)) {
            norm_rope(k, Some(&k_norm), Some(&rope[token * width..][..width]), op.eps, &mut made);
            call.store(k_cache, slot * row + at, &made);
            norm_rope(v, None, None, op.eps, &mut made);
            call.store(v_cache, slot * row + at, &made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{norm_rope, norm_rope_pairs};

    #[test]
    fn pairs_are_half_a_head_apart_and_rotate_by_their_own_angles() {
        let (x, weight) = ([1.0, 2.0, 2.0, 4.0], [1.0, 1.0, 2.0, 1.0]);
        let mut y = [0.0; 4];
        // The first pair rotates by a right angle, the second not at all.
        norm_rope(&x, Some(&weight), Some(&[0.0, 1.0, 1.0, 0.0]), 0.0, &mut y);
        let want = [-1.6, 0.8, 0.4, 1.6];
        assert!(y.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{y:?}");
    }

    #[test]
    fn each_axis_of_2d_rope_rotates_its_half() {
        let mut y = [0.0; 4];
        // A right angle along the first axis, none along the second: pairs are neighbours in heads of four.
        norm_rope_pairs(&[1.0; 4], None, Some(&[0.0, 1.0, 1.0, 0.0]), (0.0, 1), &mut y);
        assert_eq!(y, [-1.0, 1.0, 1.0, 1.0]);
    }
}
