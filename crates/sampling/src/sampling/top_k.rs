//! Top k: keeps the k largest logits.

use super::Candidates;

/// Keeps the `k` largest logits, sorted; `k ≤ 0` = off.
pub fn apply(candidates: &mut Candidates, k: i32) {
    match usize::try_from(k) {
        Ok(k) if k > 0 => candidates.keep_largest(k),
        _ => {}
    }
}
