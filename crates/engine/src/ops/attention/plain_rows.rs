//! Bidirectional attention without matrix units: blocks of scores and sums in registers.

use bytemuck::NoUninit;

use super::{
    choice::Sizes,
    heads::{BLOCK, Heads, Kept, WIDTH},
    params::word,
};
use crate::gpu::{DeviceFacts, Dispatch, Kernel, Part, Place};

static PLAIN_ROWS: Kernel =
    Kernel { name: "attention/plain_rows", source: include_str!("plain_rows.wgsl") };
static SUBGROUP: Part =
    Part { kind: "share", name: "share/subgroup", source: include_str!("share/subgroup.wgsl") };
static WORKGROUP: Part =
    Part { kind: "share", name: "share/workgroup", source: include_str!("share/workgroup.wgsl") };

static APART: Part =
    Part { kind: "source", name: "source/apart", source: include_str!("source/apart.wgsl") };
static TOGETHER: Part =
    Part { kind: "source", name: "source/together", source: include_str!("source/together.wgsl") };

/// Rows that a workgroup makes, as in the kernel.
const ROWS: usize = 64;
/// Lanes that share rows, as in the kernel.
const SHARING: u32 = 8;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    // Tokens, heads and kv heads.
    sizes: [u32; 3],
    // Quads from one token and from one head to the next, of queries, then of keys and values.
    q_apart: [u32; 2],
    k_apart: [u32; 2],
    // The first quad of keys, and of values.
    k_first: u32,
    v_first: u32,
}

/// How the lanes that share rows meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// In a subgroup: dealt out over 32 lanes, or as neighbours.
    Subgroup {
        /// Whether they are dealt out.
        dealt: bool,
    },
    /// By workgroup memory.
    Workgroup,
}

/// How the kernel is made for heads of a width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlainRows {
    /// Quads of a head.
    quads: u32,
    /// Quads that each of the lanes that share rows sums.
    held: u32,
    /// How those lanes meet.
    share: Share,
}

impl PlainRows {
    /// For the heads that towers have. Its memory fits every device.
    pub(super) fn new(width: usize, facts: &DeviceFacts) -> Option<Self> {
        let quads = word(width / 4);
        let share = match facts.subgroups {
            Some((least @ SHARING.., _)) => Share::Subgroup { dealt: least >= 32 },
            _ => Share::Workgroup,
        };
        let rows = Self { quads, held: quads.div_ceil(SHARING), share };
        matches!(width, 64 | 72).then_some(rows)
    }

    /// Bidirectional attention: inputs 0, 1 and 2 are heads as they are used.
    pub(super) fn bidirectional(self, sizes: &Sizes) -> Dispatch {
        let params = Params {
            sizes: [sizes.tokens, sizes.heads, sizes.kv_heads].map(word),
            q_apart: [word(sizes.heads) * self.quads, self.quads],
            k_apart: [word(sizes.kv_heads) * self.quads, self.quads],
            k_first: 0,
            v_first: 0,
        };
        let inputs = [0, 1, 2].map(Place::Input);
        let dispatch = self.dispatch(sizes, &params).part(&APART);
        inputs.into_iter().fold(dispatch, Dispatch::read).write(Place::Output(0))
    }

    /// The same after a dispatch that makes the heads; `None` for widths it has no kernel for.
    pub(super) fn behind(self, heads: &Heads, sizes: &Sizes) -> Option<[Dispatch; 2]> {
        let blocks = sizes.tokens.div_ceil(BLOCK);
        let head = word(blocks * BLOCK) * self.quads;
        let params = Params {
            sizes: [sizes.tokens, sizes.heads, sizes.kv_heads].map(word),
            q_apart: [self.quads, head],
            k_apart: [self.quads, head],
            k_first: word(sizes.heads) * head,
            v_first: word(sizes.heads + sizes.kv_heads) * head,
        };
        let (made, place) = heads.dispatch(sizes, Kept::Rows, blocks);
        let dispatch = self.dispatch(sizes, &params).part(&TOGETHER);
        let rows = dispatch.read(place).write(Place::Output(0));
        (sizes.width == WIDTH).then_some([made, rows])
    }

    fn dispatch(self, sizes: &Sizes, params: &Params) -> Dispatch {
        let dispatch = Dispatch::new(&PLAIN_ROWS);
        let dispatch = match self.share {
            Share::Subgroup { dealt } => {
                dispatch.part(&SUBGROUP).constant("DEALT", u8::from(dealt))
            }
            Share::Workgroup => dispatch.part(&WORKGROUP),
        };
        dispatch.constant("QUADS", self.quads).constant("HELD", self.held).params(params).grid(
            sizes.tokens.div_ceil(ROWS),
            sizes.heads,
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{PlainRows, Share};
    use crate::gpu::DeviceFacts;

    #[test]
    fn heads_of_towers_are_taken_by_every_device() {
        let floor = DeviceFacts::floor();
        let wide = DeviceFacts { subgroups: Some((32, 64)), ..DeviceFacts::floor() };
        let middle = DeviceFacts { subgroups: Some((8, 32)), ..DeviceFacts::floor() };
        let narrow = DeviceFacts { subgroups: Some((4, 32)), ..DeviceFacts::floor() };
        let rows = |quads, held, share| Some(PlainRows { quads, held, share });
        for (width, facts, want) in [
            (64, &floor, rows(16, 2, Share::Workgroup)),
            (64, &narrow, rows(16, 2, Share::Workgroup)),
            (64, &middle, rows(16, 2, Share::Subgroup { dealt: false })),
            (64, &wide, rows(16, 2, Share::Subgroup { dealt: true })),
            (72, &wide, rows(18, 3, Share::Subgroup { dealt: true })),
            // Most lanes would have nothing to do, or too much to keep.
            (32, &wide, None),
            (128, &wide, None),
        ] {
            assert_eq!(PlainRows::new(width, facts), want, "{width} {facts:?}");
        }
    }
}
