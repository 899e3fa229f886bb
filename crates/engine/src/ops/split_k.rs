//! Split-K: several workgroups share a long sum, each sums a chunk, and a second dispatch adds the chunks up.

use bytemuck::NoUninit;

use crate::gpu::{BufferRef, Dispatch, Kernel};

static ADD_UP: Kernel = Kernel { name: "split_k/add_up", source: include_str!("split_k.wgsl") };

/// Lanes of a workgroup that adds up chunks.
const LANES: usize = 256;
/// Workgroups that keep a large device busy.
const BUSY: usize = 512;
/// Maximum chunks: adding them up reads them all.
const MOST: usize = 16;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    results: u32,
    chunks: u32,
}

/// Number of chunks for `groups` workgroups and sums of `terms` terms, each chunk of at least `least` terms.
pub(crate) fn chunks(groups: usize, terms: usize, least: usize) -> usize {
    (BUSY / groups.max(1)).min(terms / least).clamp(1, MOST)
}

/// The buffer of the chunks' sums: one set of results after the other.
pub(crate) fn parts_at(scratch: usize, results: usize, chunks: usize) -> BufferRef {
    BufferRef::Scratch(scratch, (results * chunks) as u64 * 4)
}

/// What a matmul adds its sums to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    None,
    /// Another buffer.
    Added(BufferRef),
    /// The buffer of the results: a state that accumulates.
    Own,
}

impl Base {
    /// Adds the part and its binding, the last one of the dispatch.
    pub(crate) fn composed(self, dispatch: Dispatch) -> Dispatch {
        match self {
            Self::None => dispatch.part(part!("base", "none")),
            Self::Added(base) => dispatch.part(part!("base", "added")).read_as("addend", base),
            Self::Own => dispatch.part(part!("base", "own")),
        }
    }
}

/// Adds the chunks' sums up, the first chunk first.
pub(crate) fn add_up(parts: BufferRef, results: usize, chunks: usize, to: BufferRef) -> Dispatch {
    add_up_onto(Base::None, parts, results, chunks, to)
}

/// The base plus the chunks' sums.
pub(crate) fn add_up_onto(
    base: Base,
    parts: BufferRef,
    results: usize,
    chunks: usize,
    to: BufferRef,
) -> Dispatch {
    let word = |n: usize| u32::try_from(n).expect("sizes of one value fit 32 bits");
    let dispatch = Dispatch::new(&ADD_UP)
        .params(&Params { results: word(results), chunks: word(chunks) })
        .read(parts)
        .write(to)
        .grid_over(results.div_ceil(LANES));
    base.composed(dispatch)
}

#[cfg(test)]
mod tests {
    use super::chunks;

    #[test]
    fn few_workgroups_share_long_sums() {
        for (groups, terms, wanted) in
            [(1, 1 << 20, 16), (96, 262_144, 5), (600, 262_144, 1), (32, 12_288, 12), (32, 1536, 1)]
        {
            assert_eq!(chunks(groups, terms, 1024), wanted, "{groups} groups, {terms} terms");
        }
    }
}
