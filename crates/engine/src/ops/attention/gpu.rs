//! Few tokens: the cache is split over workgroups, and a second launch combines what they found. Many tokens: blocks of rows
//! against tiles of keys.

use bytemuck::NoUninit;

use super::Attention;
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Part, Place},
    graph::Element,
    ops::parts::{kv, reduce, team},
};

static SPLIT: Kernel = Kernel { name: "attention/split", source: include_str!("split.wgsl") };
static COMBINE: Kernel = Kernel { name: "attention/combine", source: include_str!("combine.wgsl") };
static TILE: Kernel = Kernel { name: "attention/tile", source: include_str!("tile.wgsl") };
static KEYS: Part = Part { kind: "keys", name: "keys", source: include_str!("keys.wgsl") };
static STRETCHES: Part =
    Part { kind: "stretches", name: "stretches", source: include_str!("stretches.wgsl") };

/// Lanes of a workgroup.
const GROUP: usize = 256;
/// Keys a workgroup of the split kernel takes at a time.
const SPLIT_KEYS: usize = 64;
/// Rows of the tile kernel's blocks.
const TILE_ROWS: usize = 32;
/// Quads of a head that a workgroup combines.
const SLICE: usize = 32;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    slots: u32,
    window: u32,
}

pub(super) fn forward(op: &Attention, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (&[tokens, heads, width], &[slots, kv_heads, _]) =
        (call.input(0).shape.dims(), call.input(1).shape.dims())
    else {
        unreachable!("infer has checked the shapes")
    };
    let word = |n: usize| u32::try_from(n).expect("sizes of a cache fit 32 bits");
    let params = Params {
        tokens: word(tokens),
        heads: word(heads),
        kv_heads: word(kv_heads),
        slots: word(slots),
        window: op.window.unwrap_or(u32::MAX),
    };
    let keys = op.window.map_or(slots, |window| slots.min(window as usize + tokens - 1));
    let sizes = Sizes { tokens, heads, kv_heads, width, keys };
    let cache = call.input(1).element;
    match Choice::new(&sizes, call.facts) {
        Choice::Split { rows, splits } => {
            split(&sizes, (rows, splits), (params, cache), call.facts)
        }
        Choice::Tile { stage } => {
            let blocks = (tokens * heads / kv_heads).div_ceil(TILE_ROWS);
            let tile = over_cache(&TILE, &sizes, (params, cache)).constant("STAGE", stage as u32);
            vec![tile.write(Place::Output(0)).grid(blocks, kv_heads, 1)]
        }
    }
}

fn split(
    sizes: &Sizes,
    (rows, splits): (usize, usize),
    (params, cache): (Params, Element),
    facts: &DeviceFacts,
) -> Vec<Dispatch> {
    let quads = sizes.width / 4;
    let places = sizes.tokens * sizes.heads;
    let parts = Place::Scratch(0, (places * splits * (quads + 1) * 16) as u64);
    let constants = |dispatch: Dispatch| {
        dispatch
            .part(&STRETCHES)
            .constant("TILE", SPLIT_KEYS as u32)
            .constant("SPLITS", splits as u32)
            .constant("WG", GROUP as u32)
    };
    let split = constants(over_cache(&SPLIT, sizes, (params, cache)))
        .part(team(facts))
        .constant("LANES", lanes(facts) as u32)
        .constant("ROWS", rows as u32)
        .write(if splits == 1 { Place::Output(0) } else { parts })
        .grid(splits, sizes.rows().div_ceil(rows), sizes.kv_heads);
    if splits == 1 {
        return vec![split];
    }
    let slice = quads.min(SLICE);
    let combine = constants(Dispatch::new(&COMBINE))
        .part(&KEYS)
        .part(reduce(facts))
        .constant("WIDTH", sizes.width as u32)
        .constant("QUADS", quads as u32)
        .constant("SLICE", slice as u32)
        .params(&params)
        .read(parts)
        .write(Place::Output(0))
        .grid(places, quads.div_ceil(slice), 1);
    vec![split, combine]
}

/// A kernel that reads queries and caches.
fn over_cache(
    kernel: &'static Kernel,
    sizes: &Sizes,
    (params, cache): (Params, Element),
) -> Dispatch {
    Dispatch::new(kernel)
        .part(kv(cache))
        .part(&KEYS)
        .constant("WIDTH", sizes.width as u32)
        .constant("QUADS", (sizes.width / 4) as u32)
        .params(&params)
        .read(Place::Input(0))
        .read(Place::Input(1))
        .read(Place::Input(2))
}

/// Lanes that share a key's score.
fn lanes(facts: &DeviceFacts) -> usize {
    facts.subgroups.map_or(8, |(least, _)| least.min(8)) as usize
}

/// What the choice depends on, beside the device.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    tokens: usize,
    heads: usize,
    kv_heads: usize,
    width: usize,
    /// The most keys a run can see.
    keys: usize,
}

impl Sizes {
    /// Rows of queries that share a kv head.
    fn rows(&self) -> usize {
        self.tokens * self.heads / self.kv_heads
    }
}

/// Which kernel, and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Rows a workgroup takes together, and workgroups the keys are split over.
    Split { rows: usize, splits: usize },
    /// Quads of a head staged at a time.
    Tile { stage: usize },
}

impl Choice {
    /// Tokens up to which the cache is split.
    const FEW_TOKENS: usize = 8;
    /// Rows the split kernel has registers for.
    const MOST_ROWS: usize = 8;
    /// Keys one workgroup takes without help.
    const FEW_KEYS: usize = 128;
    /// Workgroups that keep a large device busy.
    const BUSY: usize = 256;

    fn new(sizes: &Sizes, facts: &DeviceFacts) -> Self {
        if sizes.tokens > Self::FEW_TOKENS {
            let roomy = facts.workgroup_bytes >= 32 << 10 && sizes.width.is_multiple_of(32);
            return Self::Tile { stage: if roomy { 8 } else { 4 } };
        }
        let most = (1..=Self::MOST_ROWS.min(sizes.rows()))
            .rev()
            .find(|rows| split_bytes(*rows, sizes.width) <= facts.workgroup_bytes as usize);
        let blocks = sizes.rows().div_ceil(most.unwrap_or(1));
        // Blocks of equal size: 9 rows are two blocks of 5, not 8 and 1.
        let rows = sizes.rows().div_ceil(blocks);
        let splits = if sizes.keys <= Self::FEW_KEYS {
            1
        } else {
            let busy = (Self::BUSY / (blocks * sizes.kv_heads)).clamp(4, 128);
            sizes.keys.div_ceil(SPLIT_KEYS).min(busy)
        };
        Self::Split { rows, splits }
    }
}

/// Workgroup memory of the split kernel: queries, weights, numbers of the rows, sums of the lanes, sums of the teams.
fn split_bytes(rows: usize, width: usize) -> usize {
    rows * (width * 4 + SPLIT_KEYS * 4 + 12) + GROUP * 16 + GROUP * 4
}

#[cfg(test)]
mod tests {
    use super::{Choice, Sizes, split_bytes};
    use crate::gpu::DeviceFacts;

    #[test]
    fn kernels_follow_tokens_heads_keys_and_memory() {
        let floor = DeviceFacts::floor();
        let roomy = DeviceFacts { workgroup_bytes: 32 << 10, ..DeviceFacts::floor() };
        let sizes =
            |tokens, heads, kv_heads, width, keys| Sizes { tokens, heads, kv_heads, width, keys };
        let split = |rows, splits| Choice::Split { rows, splits };
        for (sizes, facts, want) in [
            // E2B: one token, sliding and global layers.
            (sizes(1, 8, 1, 256, 512), &floor, split(8, 8)),
            (sizes(1, 8, 1, 512, 8192), &floor, split(4, 128)),
            (sizes(1, 8, 1, 512, 8192), &roomy, split(8, 128)),
            // 31B, sliding: two heads share one of sixteen kv heads.
            (sizes(1, 32, 16, 256, 1024), &floor, split(2, 16)),
            (sizes(1, 9, 1, 64, 100), &floor, split(5, 1)),
            (sizes(4, 8, 2, 64, 129), &floor, split(8, 3)),
            (sizes(512, 8, 1, 512, 8192), &floor, Choice::Tile { stage: 4 }),
            (sizes(512, 8, 1, 512, 8192), &roomy, Choice::Tile { stage: 8 }),
            (sizes(512, 8, 1, 48, 8192), &roomy, Choice::Tile { stage: 4 }),
        ] {
            assert_eq!(Choice::new(&sizes, facts), want, "{sizes:?}");
        }
    }

    #[test]
    fn the_widest_head_fits_the_floor() {
        assert!(split_bytes(1, 512) <= DeviceFacts::floor().workgroup_bytes as usize);
    }
}
