//! The dispatches of attention. Many tokens: blocks of rows against tiles of keys; few: see [`super::split`].

use bytemuck::NoUninit;

use super::{
    Attention, BLOCKS_INPUT, blocks,
    choice::{Choice, Form, Sizes, stage},
    heads::Heads,
    params::{Params, over_cache, over_halves, sizes},
    plain_rows::PlainRows,
    split::{Lie, Source, split},
};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place},
    graph::Element,
    ops::{
        parts::{matrix, reduce},
        split_k::{add_up, chunks, parts_at},
    },
};

static TILE: Kernel = Kernel { name: "attention/tile", source: include_str!("tile.wgsl") };
static MATRIX: Kernel = Kernel { name: "attention/matrix", source: include_str!("matrix.wgsl") };
static DELTA: Kernel = Kernel { name: "attention/delta", source: include_str!("delta.wgsl") };
static BACKWARD: Kernel =
    Kernel { name: "attention/backward", source: include_str!("backward.wgsl") };
static QUERY_SIDE: Part =
    Part { kind: "side", name: "query_side", source: include_str!("query_side.wgsl") };
static KEY_SIDE: Part =
    Part { kind: "side", name: "key_side", source: include_str!("key_side.wgsl") };
static SUMS: Part = Part { kind: "sums", name: "sums", source: include_str!("sums.wgsl") };
static RUNNING: Part =
    Part { kind: "tokens", name: "running", source: include_str!("running.wgsl") };
static BLOCKS: Part = Part { kind: "tokens", name: "blocks", source: include_str!("blocks.wgsl") };
static BIDIRECTIONAL: Part =
    Part { kind: "tokens", name: "bidirectional", source: include_str!("bidirectional.wgsl") };
static SPANS: Part = Part { kind: "tokens", name: "spans", source: include_str!("spans.wgsl") };
static WHOLE: Part = Part { kind: "tokens", name: "whole", source: include_str!("whole.wgsl") };

/// Rows of the tile kernel's blocks.
const TILE_ROWS: usize = 32;
/// Lanes of its workgroups.
const TILE_LANES: usize = 256;
/// What a workgroup of gradients takes of the other side at least.
const LEAST_OTHERS: usize = 128;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DeltaParams {
    places: u32,
}

pub(super) fn forward(op: &Attention, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(op.window, call);
    let cache = (params, call.input(1).element);
    if call.inputs() > BLOCKS_INPUT {
        let tile = many(&sizes, cache, Form::new(sizes.width, call.facts)).part(&BLOCKS);
        return vec![tile.read(Place::Input(BLOCKS_INPUT))];
    }
    match Choice::together(&sizes, call.facts) {
        Choice::Split(cut) => {
            let source = Source::Ready { q: 0, caches: [1, 2] };
            // Heads that come ready are taken together.
            split((&sizes, &cut), cache, (source, Lie::Rows(None)), call.facts)
        }
        Choice::Many(form) => vec![many(&sizes, cache, form).part(&RUNNING)],
    }
}

/// Each token over its span.
pub(super) fn spans(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(None, call);
    let form = Form::new(sizes.width, call.facts);
    let tile = many(&sizes, (params, call.input(1).element), form).part(&SPANS);
    vec![tile.read(Place::Input(3))]
}

/// All tokens of a run over each other.
pub(super) fn bidirectional(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(None, call);
    if let Some(units) = blocks::units(sizes.width, call.facts) {
        return blocks::bidirectional(&sizes, &Heads::ready(call), units);
    }
    if let Some(rows) = PlainRows::new(sizes.width, call.facts) {
        return vec![rows.bidirectional(&sizes)];
    }
    let form = Form::new(sizes.width, call.facts);
    vec![many(&sizes, (params, Element::F32), form).part(&BIDIRECTIONAL)]
}

/// A whole sequence over itself.
pub(super) fn train(window: Option<u32>, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (sizes, params) = sizes(window, call);
    let tile = many(&sizes, (params, Element::F32), Form::new(sizes.width, call.facts));
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
        let (own, others) = match output {
            0 => (sizes.rows(), sizes.tokens),
            _ => (sizes.tokens, sizes.rows()),
        };
        let blocks = own.div_ceil(TILE_ROWS);
        let shared = chunks(blocks * sizes.kv_heads, others, LEAST_OTHERS);
        let (results, output) = (own * sizes.kv_heads * sizes.width, Place::Output(output));
        // The first scratch memory holds what goes before all three.
        let parts = if shared > 1 { parts_at(1, results, shared) } else { output };
        let dispatch = Dispatch::new(&BACKWARD)
            .keys(&Params { splits: shared as u32, ..params })
            .part(side)
            .part(&SUMS)
            .constant("QUADS", (sizes.width / 4) as u32)
            .constant("STAGE", stage(sizes.width, call.facts) as u32)
            .constant("EACH", each(sizes.width))
            .constant("PLAIN", plain);
        let inputs = [0, 1, 2, 6, 5].into_iter().map(Place::Input).chain([delta]);
        let bound = inputs.fold(dispatch, Dispatch::read).write(parts);
        let dispatch = bound.read(Place::Input(3)).grid(blocks, sizes.kv_heads, shared);
        let sum = (shared > 1).then(|| add_up(parts, results, shared, output));
        [dispatch].into_iter().chain(sum)
    };
    let sides = [(&QUERY_SIDE, 0), (&KEY_SIDE, 0), (&KEY_SIDE, 1)];
    let gradients =
        (0..).zip(sides).flat_map(|(output, (side, plain))| gradient(side, plain, output));
    [deltas].into_iter().chain(gradients).collect()
}

/// Rows that a lane of a plain tile sums its quad for.
fn each(width: usize) -> u32 {
    let groups = (TILE_LANES * 4 / width).min(TILE_ROWS);
    TILE_ROWS.div_ceil(groups) as u32
}

/// Many tokens over a cache; who sees what is a part of the caller's.
fn many(sizes: &Sizes, cache: (Params, Element), form: Form) -> Dispatch {
    let (dispatch, rows) = match form {
        Form::Plain { stage } => {
            let dispatch = over_cache(&TILE, sizes, cache)
                .part(&SUMS)
                .constant("EACH", each(sizes.width))
                .constant("STAGE", stage as u32);
            (dispatch, TILE_ROWS)
        }
        Form::Matrix(head, units) => {
            let dispatch = over_halves(&MATRIX, sizes, cache).part(matrix(units)).part(head.part());
            (dispatch, head.rows())
        }
    };
    [0, 1, 2]
        .map(Place::Input)
        .into_iter()
        .fold(dispatch, Dispatch::read)
        .write(Place::Output(0))
        .grid(sizes.rows().div_ceil(rows), sizes.kv_heads, 1)
}
