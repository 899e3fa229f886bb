//! Which keys a token sees: for the CPU reference, and as a WGSL part of the flash kernels.

use std::ops::Range;

use crate::{
    gpu::{BufferRef, Dispatch, Part},
    graph::Step,
};

static CAUSAL: Part =
    Part { kind: "mask", name: "mask/causal", source: include_str!("causal.wgsl") };
static BLOCK: Part = Part { kind: "mask", name: "mask/block", source: include_str!("block.wgsl") };
static BIDIRECTIONAL: Part =
    Part { kind: "mask", name: "mask/bidirectional", source: include_str!("bidirectional.wgsl") };
static PACKED: Part =
    Part { kind: "mask", name: "mask/packed", source: include_str!("packed.wgsl") };
static PACKED_CAUSAL: Part =
    Part { kind: "mask", name: "mask/packed_causal", source: include_str!("packed_causal.wgsl") };

/// Which key positions a token at position `p` sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// All positions up to `p`, or the last `window` of them.
    Causal {
        /// The number of positions a token sees, including itself; `None`: all.
        window: Option<u32>,
    },
    /// Causal, and a token of a block (such as an image) also sees the rest of its block. An input `u32[t]` holds for each token the position one
    /// past the end of its block, or 0.
    Block {
        /// The number of positions a token sees, including itself.
        window: u32,
    },
    /// Every live token of the pass sees every other one; there is no KV cache.
    Bidirectional,
    /// Packed sequences: an input `u32[t, 2]` holds for each token the first position it sees and one past the last. Neither decreases from token
    /// to token, and no range is empty.
    Packed,
}

impl Mask {
    /// The input of block ends or packed ranges, if the mask has one.
    pub(super) const INPUT: usize = 3;

    /// The maximum number of positions a token sees, including itself.
    pub(super) fn window(self) -> Option<u32> {
        match self {
            Self::Causal { window } => window,
            Self::Block { window } => Some(window),
            Self::Bidirectional | Self::Packed => None,
        }
    }

    /// Whether [`Mask::INPUT`] is an input of the operation.
    pub(super) fn has_input(self) -> bool {
        matches!(self, Self::Block { .. } | Self::Packed)
    }

    /// Adds this mask's part to a flash kernel.
    pub(super) fn apply(self, dispatch: Dispatch) -> Dispatch {
        let part = match self {
            Self::Causal { .. } => &CAUSAL,
            Self::Block { .. } => &BLOCK,
            Self::Bidirectional => &BIDIRECTIONAL,
            Self::Packed => &PACKED,
        };
        let dispatch = dispatch.part(part);
        if self.has_input() { dispatch.read(BufferRef::Input(Self::INPUT)) } else { dispatch }
    }

    /// The keys that the tokens of a pass see; `input` holds the data of [`Mask::INPUT`].
    pub(super) fn visible<'a>(self, step: &Step, input: Option<&'a [u32]>) -> Visible<'a> {
        let data = || input.expect("infer has checked that the mask has its input");
        let (position, count) = (step.position as usize, step.count as usize);
        match self {
            Self::Causal { window } => Visible::Causal { window },
            Self::Block { window } => {
                Visible::Block { window, live_end: position + count, ends: data() }
            }
            Self::Bidirectional => Visible::All { count },
            Self::Packed => Visible::Packed { ranges: data() },
        }
    }
}

/// Adds the causal mask of packed training sequences, which also stores the log-sum-exp of each row for the gradient.
pub(super) fn packed_causal(
    dispatch: Dispatch,
    starts: BufferRef,
    log_sums: BufferRef,
) -> Dispatch {
    dispatch.part(&PACKED_CAUSAL).write(log_sums).read(starts)
}

/// The keys that each token of a pass sees, for the CPU reference.
#[derive(Debug, Clone, Copy)]
pub(super) enum Visible<'a> {
    /// [`Mask::Causal`].
    Causal { window: Option<u32> },
    /// [`Mask::Block`]; the live tokens end before `live_end`.
    Block { window: u32, live_end: usize, ends: &'a [u32] },
    /// [`Mask::Bidirectional`].
    All { count: usize },
    /// [`Mask::Packed`].
    Packed { ranges: &'a [u32] },
    /// Causal within packed training sequences; `starts` holds the first position of each token's sequence.
    PackedCausal { window: Option<u32>, starts: &'a [u32] },
}

impl Visible<'_> {
    /// The positions that token `token` of the pass, at `position`, sees.
    pub(super) fn keys(&self, token: usize, position: usize) -> Range<usize> {
        match *self {
            Self::Causal { window } => causal(window, position),
            Self::Block { window, live_end, ends } => {
                let keys = causal(Some(window), position);
                // A block that extends beyond the live tokens ends with them.
                let end = (ends[token] as usize).min(live_end);
                keys.start..end.max(keys.end)
            }
            Self::All { count } => 0..count,
            Self::Packed { ranges } => ranges[token * 2] as usize..ranges[token * 2 + 1] as usize,
            Self::PackedCausal { window, starts } => {
                let keys = causal(window, token);
                keys.start.max(starts[token] as usize)..keys.end
            }
        }
    }
}

/// The positions that the token at `position` sees under a causal mask.
pub(super) fn causal(window: Option<u32>, position: usize) -> Range<usize> {
    let first = window.map_or(0, |window| (position + 1).saturating_sub(window as usize));
    first..position + 1
}

#[cfg(test)]
mod tests {
    use super::{Mask, Visible};
    use crate::graph::Step;

    #[test]
    fn visible_keys_of_each_mask() {
        let step = Step { position: 10, count: 3, ..Step::default() };
        let keys = |mask: Mask, input: Option<&[u32]>| {
            let visible = mask.visible(&step, input);
            [0, 1, 2].map(|token| visible.keys(token, 10 + token))
        };
        assert_eq!(keys(Mask::Causal { window: None }, None), [0..11, 0..12, 0..13]);
        assert_eq!(keys(Mask::Causal { window: Some(4) }, None), [7..11, 8..12, 9..13]);
        // The first two tokens are a block; the third is in one whose end is not live yet.
        let ends: &[u32] = &[12, 12, 99];
        assert_eq!(keys(Mask::Block { window: 4 }, Some(ends)), [7..12, 8..12, 9..13]);
        assert_eq!(keys(Mask::Bidirectional, None), [0..3, 0..3, 0..3]);
        let ranges: &[u32] = &[0, 2, 0, 2, 2, 3];
        assert_eq!(keys(Mask::Packed, Some(ranges)), [0..2, 0..2, 2..3]);
        let packed = Visible::PackedCausal { window: Some(2), starts: &[0, 0, 2] };
        assert_eq!([0, 1, 2].map(|token| packed.keys(token, token)), [0..1, 0..2, 2..3]);
    }
}
