//! The launches of attention. Many tokens: blocks of rows against tiles of keys; few: see [`super::split`].

use bytemuck::NoUninit;

use super::{
    Attention, BLOCKS_INPUT,
    choice::{Choice, Sizes, stage},
    params::{KEYS, Params, over_cache, sizes},
    split::{Source, split},
};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place},
    graph::Element,
    ops::parts::reduce,
};

static TILE: Kernel = Kernel { name: "attention/tile", source: include_str!("tile.wgsl") };
static DELTA: Kernel = Kernel { name: "attention/delta", source: include_str!("delta.wgsl") };
static BACKWARD: Kernel =
    Kernel { name: "attention/backward", source: include_str!("backward.wgsl") };
static QUERY_SIDE: Part =
    Part { kind: "side", name: "query_side", source: include_str!("query_side.wgsl") };
static KEY_SIDE: Part =
    Part { kind: "side", name: "key_side", source: include_str!("key_side.wgsl") };
static RUNNING: Part =
    Part { kind: "tokens", name: "running", source: include_str!("running.wgsl") };
static BLOCKS: Part = Part { kind: "tokens", name: "blocks", source: include_str!("blocks.wgsl") };
static EVERYONE: Part =
    Part { kind: "tokens", name: "everyone", source: include_str!("everyone.wgsl") };
static SPANS: Part = Part { kind: "tokens", name: "spans", source: include_str!("spans.wgsl") };
static WHOLE: Part = Part { kind: "tokens", name: "whole", source: include_str!("whole.wgsl") };

/// Rows of the tile kernel's blocks.
const TILE_ROWS: usize = 32;
/// Lanes of its workgroups.
const TILE_LANES: usize = 256;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DeltaParams {
    places: u32,
}

pub(super) fn forward(op: &Attention, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(op.window, call);
    let cache = (params, call.input(1).element);
    if call.inputs() > BLOCKS_INPUT {
        let tile = tile(&sizes, cache, stage(sizes.width, call.facts)).part(&BLOCKS);
        return vec![tile.read(Place::Input(BLOCKS_INPUT))];
    }
    match Choice::new(&sizes, call.facts) {
        Choice::Split(cut) => {
            split(&sizes, &cut, cache, Source::Ready { q: 0, caches: [1, 2] }, call.facts)
        }
        Choice::Tile { stage } => vec![tile(&sizes, cache, stage).part(&RUNNING)],
    }
}

/// Each token over its span.
pub(super) fn spans(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(None, call);
    let stage = stage(sizes.width, call.facts);
    let tile = tile(&sizes, (params, call.input(1).element), stage).part(&SPANS);
    vec![tile.read(Place::Input(3))]
}

/// All tokens of a run over each other.
pub(super) fn everyone(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(None, call);
    let stage = stage(sizes.width, call.facts);
    vec![tile(&sizes, (params, Element::F32), stage).part(&EVERYONE)]
}

/// A whole sequence over itself.
pub(super) fn train(window: Option<u32>, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(window, call);
    let stage = stage(sizes.width, call.facts);
    let tile = tile(&sizes, (params, Element::F32), stage);
    vec![tile.part(&WHOLE).write(Place::Output(1)).read(Place::Input(3))]
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
        .read(Place::Input(4))
        .read(Place::Input(6))
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
        let inputs = [0, 1, 2, 6, 5].into_iter().map(Place::Input).chain([delta]);
        let bound = inputs.fold(dispatch, Dispatch::read).write(Place::Output(output));
        bound.read(Place::Input(3)).grid(own.div_ceil(TILE_ROWS), sizes.kv_heads, 1)
    };
    vec![deltas, gradient(&QUERY_SIDE, 0, 0), gradient(&KEY_SIDE, 0, 1), gradient(&KEY_SIDE, 1, 2)]
}

fn tile(sizes: &Sizes, cache: (Params, Element), stage: usize) -> Dispatch {
    let groups = (TILE_LANES * 4 / sizes.width).min(TILE_ROWS);
    over_cache(&TILE, sizes, cache)
        .constant("EACH", TILE_ROWS.div_ceil(groups) as u32)
        .read(Place::Input(0))
        .read(Place::Input(1))
        .read(Place::Input(2))
        .constant("STAGE", stage as u32)
        .write(Place::Output(0))
        .grid(sizes.rows().div_ceil(TILE_ROWS), sizes.kv_heads, 1)
}
