//! Rows on all cores, where the feature says so.

/// Calls `work` with the number of each piece of `size` elements, and the piece.
#[cfg(feature = "threads")]
pub(crate) fn for_rows<T: Send>(
    out: &mut [T],
    size: usize,
    work: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    use rayon::prelude::*;
    out.par_chunks_mut(size).enumerate().for_each(|(index, row)| work(index, row));
}

/// Calls `work` with the number of each piece of `size` elements, and the piece.
#[cfg(not(feature = "threads"))]
pub(crate) fn for_rows<T>(out: &mut [T], size: usize, work: impl Fn(usize, &mut [T])) {
    out.chunks_mut(size).enumerate().for_each(|(index, row)| work(index, row));
}
