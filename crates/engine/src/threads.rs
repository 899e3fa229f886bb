//! Work for all cores; where there are no threads, as in a page, the same work one piece after the other.

#[cfg(not(target_arch = "wasm32"))]
use rayon::prelude::*;

/// Multiplications that are worth waking other cores for: some tens of microseconds.
const WORTH_SHARING: u64 = 1 << 17;

/// Fills `out` in pieces of `size` numbers (the last one may be shorter), each by one call that gets the piece's number and
/// memory of its core's own. `operations` is what all pieces cost together, in multiplications.
pub(crate) fn for_pieces<S>(
    out: &mut [f32],
    size: usize,
    operations: u64,
    scratch: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, usize, &mut [f32]) + Send + Sync,
) {
    if size == 0 {
        return;
    }
    let pieces = out.len().div_ceil(size);
    if operations < WORTH_SHARING || pieces < 2 {
        let mut scratch = scratch();
        let pieces = out.chunks_mut(size).enumerate();
        pieces.for_each(|(index, piece)| work(&mut scratch, index, piece));
    } else {
        let least = (WORTH_SHARING / 2).div_ceil(operations.div_ceil(pieces as u64));
        share(out, size, least as usize, scratch, work);
    }
}

/// The pieces on all cores, at least `least` of them at a time.
#[cfg(not(target_arch = "wasm32"))]
fn share<S>(
    out: &mut [f32],
    size: usize,
    least: usize,
    scratch: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, usize, &mut [f32]) + Send + Sync,
) {
    let pieces = out.par_chunks_mut(size).enumerate().with_min_len(least);
    pieces.for_each_init(scratch, |scratch, (index, piece)| work(scratch, index, piece));
}

#[cfg(target_arch = "wasm32")]
fn share<S>(
    out: &mut [f32],
    size: usize,
    _: usize,
    scratch: impl Fn() -> S,
    work: impl Fn(&mut S, usize, &mut [f32]),
) {
    let mut scratch = scratch();
    let pieces = out.chunks_mut(size).enumerate();
    pieces.for_each(|(index, piece)| work(&mut scratch, index, piece));
}

/// Has a job done on another core, some time.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn spawn(job: impl FnOnce() + Send + 'static) {
    rayon::spawn(|| {
        // A panic has been reported by then, and whoever waits for the job learns that it is gone; without this, the process
        // would end.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    });
}

/// Does a job now.
#[cfg(target_arch = "wasm32")]
pub(crate) fn spawn(job: impl FnOnce()) {
    job();
}

#[cfg(test)]
mod tests {
    use super::{WORTH_SHARING, for_pieces};

    /// Every piece is filled once, by its number, whether it is shared or not.
    fn check(len: usize, size: usize, operations: u64) {
        let mut out = vec![0.0; len];
        for_pieces(
            &mut out,
            size,
            operations,
            || 0,
            |calls, index, piece| {
                *calls += 1;
                assert!(piece.len() == size || (index + 1) * size > len);
                piece.iter_mut().for_each(|x| *x += (index + 1) as f32);
            },
        );
        let wanted: Vec<f32> = (0..len).map(|i| (i / size + 1) as f32).collect();
        assert_eq!(out, wanted, "{len} in pieces of {size}, {operations} operations");
    }

    #[test]
    fn every_piece_is_filled_once() {
        for operations in [0, 1, WORTH_SHARING, u64::MAX] {
            for (len, size) in [(0, 1), (1, 1), (3, 7), (1000, 1), (1000, 3), (4096, 64)] {
                check(len, size, operations);
            }
        }
    }
}
