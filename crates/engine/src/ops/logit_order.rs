//! The order of logits for operations that search the largest: by value, then by id; NaN comes last.

use std::cmp::Reverse;

use crate::gpu::Part;

/// The sort key of a logit in WGSL.
pub(crate) static KEY: &Part = shared_part!("key", "key");

/// All logits are candidates.
pub(crate) static LOGITS: &Part = shared_part!("candidates", "logits");

/// The results of an earlier dispatch are candidates.
pub(crate) static SURVIVORS: &Part = shared_part!("candidates", "survivors");

/// The ids of the `count` largest logits, largest first.
pub(crate) fn largest_ids(logits: &[f32], count: usize) -> Vec<u32> {
    let order = |id: &u32| (Reverse(key(logits[*id as usize])), *id);
    let mut ids: Vec<u32> = (0..).zip(logits).map(|(id, _)| id).collect();
    if count < ids.len() {
        ids.select_nth_unstable_by_key(count, order);
        ids.truncate(count);
    }
    ids.sort_unstable_by_key(order);
    ids
}

/// A logit as an integer with the same order; NaN is 0.
pub(crate) fn key(logit: f32) -> u32 {
    let bits = logit.to_bits();
    match logit {
        x if x.is_nan() => 0,
        0.0 => 1 << 31,
        x if x < 0.0 => !bits,
        _ => bits | 1 << 31,
    }
}

#[cfg(test)]
mod tests {
    use super::{key, largest_ids};

    #[test]
    fn keys_sort_like_logits() {
        let rising = [f32::NAN, f32::NEG_INFINITY, -3.0e38, -1.0, -1e-40, 0.0, 1e-40, 1.0, 3.0e38];
        assert!(rising.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert!(key(3.0e38) < key(f32::INFINITY));
        assert_eq!(key(-f32::NAN), 0);
        assert_eq!(key(-0.0), key(0.0));
        let order = [2, 0, 3, 4, 5, 1];
        for count in 0..=6 {
            let logits = [1.0, f32::NAN, 2.0, 1.0, -0.0, 0.0];
            assert_eq!(largest_ids(&logits, count), order[..count]);
        }
    }
}
