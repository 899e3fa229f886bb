//! Few tokens: the cache is split over workgroups, and a second launch combines what they found. Many tokens: blocks of rows
//! against tiles of keys.

use bytemuck::NoUninit;

use super::{
    Attention,
    choice::{Choice, Sizes, stage},
};
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Part, Place},
    graph::Element,
    ops::parts::{kv, reduce, team},
};

static SPLIT: Kernel = Kernel { name: "attention/split", source: include_str!("split.wgsl") };
static COMBINE: Kernel = Kernel { name: "attention/combine", source: include_str!("combine.wgsl") };
static TILE: Kernel = Kernel { name: "attention/tile", source: include_str!("tile.wgsl") };
static DELTA: Kernel = Kernel { name: "attention/delta", source: include_str!("delta.wgsl") };
static BACKWARD: Kernel =
    Kernel { name: "attention/backward", source: include_str!("backward.wgsl") };
static QUERY_SIDE: Part =
    Part { kind: "side", name: "query_side", source: include_str!("query_side.wgsl") };
static KEY_SIDE: Part =
    Part { kind: "side", name: "key_side", source: include_str!("key_side.wgsl") };
static KEYS: Part = Part { kind: "keys", name: "keys", source: include_str!("keys.wgsl") };
static RUNNING: Part =
    Part { kind: "tokens", name: "running", source: include_str!("running.wgsl") };
static WHOLE: Part = Part { kind: "tokens", name: "whole", source: include_str!("whole.wgsl") };
static STRETCHES: Part =
    Part { kind: "stretches", name: "stretches", source: include_str!("stretches.wgsl") };

/// Lanes of a workgroup.
pub(super) const GROUP: usize = 256;
/// Keys a workgroup of the split kernel takes at a time.
pub(super) const SPLIT_KEYS: usize = 64;
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
    splits: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DeltaParams {
    places: u32,
}

pub(super) fn forward(op: &Attention, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(op.window, call);
    let cache = call.input(1).element;
    match Choice::new(&sizes, call.facts) {
        Choice::Split { rows, splits } => {
            split(&sizes, (rows, splits), (params, cache), call.facts)
        }
        Choice::Tile { stage } => {
            vec![tile(&sizes, (params, cache), stage).part(&RUNNING)]
        }
    }
}

/// A whole sequence over itself.
pub(super) fn train(window: Option<u32>, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(window, call);
    let stage = stage(sizes.width, call.facts);
    let tile = tile(&sizes, (params, Element::F32), stage);
    vec![tile.part(&WHOLE).write(Place::Output(1))]
}

/// `dy · y` of each row, then the three gradients.
pub(super) fn backward(window: Option<u32>, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(window, call);
    let places = sizes.tokens * sizes.heads;
    let delta = Place::Scratch(0, places as u64 * 4);
    let deltas = Dispatch::new(&DELTA)
        .part(reduce(call.facts))
        .constant("WIDTH", sizes.width as u32)
        .constant("WG", 64u32)
        .params(&DeltaParams { places: places as u32 })
        .read(Place::Input(3))
        .read(Place::Input(5))
        .write(delta)
        .grid_over(places);
    let gradient = |side: &'static Part, plain: u32, output: usize| {
        let own = if output == 0 { sizes.rows() } else { sizes.tokens };
        let dispatch = Dispatch::new(&BACKWARD)
            .part(&KEYS)
            .part(side)
            .constant("QUADS", (sizes.width / 4) as u32)
            .constant("STAGE", stage(sizes.width, call.facts) as u32)
            .constant("PLAIN", plain)
            .params(&params);
        let inputs = [0, 1, 2, 5, 4].into_iter().map(Place::Input).chain([delta]);
        inputs.fold(dispatch, Dispatch::read).write(Place::Output(output)).grid(
            own.div_ceil(TILE_ROWS),
            sizes.kv_heads,
            1,
        )
    };
    vec![deltas, gradient(&QUERY_SIDE, 0, 0), gradient(&KEY_SIDE, 0, 1), gradient(&KEY_SIDE, 1, 2)]
}

/// Sizes and parameters of queries over caches, or over keys and values of the same sequence.
fn sizes(window: Option<u32>, call: &GpuCall<'_>) -> (Sizes, Params) {
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
        window: window.unwrap_or(u32::MAX),
        splits: 1,
    };
    let keys = window.map_or(slots, |window| slots.min(window as usize + tokens - 1));
    (Sizes { tokens, heads, kv_heads, width, keys }, params)
}

fn tile(sizes: &Sizes, cache: (Params, Element), stage: usize) -> Dispatch {
    over_cache(&TILE, sizes, cache).constant("STAGE", stage as u32).write(Place::Output(0)).grid(
        sizes.rows().div_ceil(TILE_ROWS),
        sizes.kv_heads,
        1,
    )
}

fn split(
    sizes: &Sizes,
    (rows, splits): (usize, usize),
    (params, cache): (Params, Element),
    facts: &DeviceFacts,
) -> Vec<Dispatch> {
    let quads = sizes.width / 4;
    let places = sizes.tokens * sizes.heads;
    let params = Params { splits: splits as u32, ..params };
    let parts = Place::Scratch(0, (places * splits * (quads + 1) * 16) as u64);
    let constants = |dispatch: Dispatch| {
        dispatch.part(&STRETCHES).constant("TILE", SPLIT_KEYS as u32).constant("WG", GROUP as u32)
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
