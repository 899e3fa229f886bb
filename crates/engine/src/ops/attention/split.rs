//! Few tokens: the cache is split over workgroups, each for all heads that share a kv head, and a second dispatch combines what they found.

use super::{
    choice::{Cut, Sizes},
    params::{Params, over_cache, word},
};
use crate::{
    gpu::{DeviceFacts, Dispatch, HeadParts, Kernel, Met, Order, Part, Place},
    graph::Element,
    ops::{
        parts::{kv_store, team},
        product::factor,
    },
};

static SPLIT: Kernel = Kernel { name: "attention/split", source: include_str!("split.wgsl") };
static COMBINE: Kernel = Kernel { name: "attention/combine", source: include_str!("combine.wgsl") };
static EXCHANGED: Part =
    Part { kind: "meet", name: "meet/exchanged", source: include_str!("meet/exchanged.wgsl") };
static MEMORY: Part =
    Part { kind: "meet", name: "meet/memory", source: include_str!("meet/memory.wgsl") };
static KV_SPLITS: Part =
    Part { kind: "kv_splits", name: "kv_splits", source: include_str!("kv_splits.wgsl") };
static TOGETHER: Part =
    Part { kind: "attend", name: "together", source: include_str!("attend/together.wgsl") };
static ALONE: Part =
    Part { kind: "attend", name: "alone", source: include_str!("attend/alone.wgsl") };
static TURNED: Part = Part { kind: "turned", name: "turned", source: include_str!("turned.wgsl") };
static READY: Part = Part { kind: "queries", name: "ready", source: include_str!("ready.wgsl") };
static SHARED: Part = Part { kind: "queries", name: "shared", source: include_str!("shared.wgsl") };
static OWN: Part = Part { kind: "queries", name: "own", source: include_str!("own.wgsl") };

static NOT_MET: Part =
    Part { kind: "met", name: "met/none", source: include_str!("met/none.wgsl") };
static MET: Part = Part { kind: "met", name: "met/given", source: include_str!("met/given.wgsl") };
static MET_SHARED: Part =
    Part { kind: "met_spot", name: "met_spot/8", source: include_str!("met_spot/8.wgsl") };
static MET_OWN: Part =
    Part { kind: "met_spot", name: "met_spot/11", source: include_str!("met_spot/11.wgsl") };

/// Buffers of raw queries over caches that hold all keys.
const SHARED_BINDINGS: usize = 6;
/// Lanes of a workgroup that combines.
const COMBINING: usize = 256;
/// Quads of a head that a workgroup combines, as in `combine.wgsl`.
const SLICE: usize = 8;

/// How the result lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// Whole rows, in this order if not as they are.
    Rows(Option<Order>),
    /// In these parts, for what reads it next.
    Parts(HeadParts),
}

/// What queries are when they come, and who writes the caches: the inputs of the operation, by number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// Normed and turned.
    Ready { q: usize, caches: [usize; 2] },
    /// Raw, with the weight of their norm and the table of angles.
    Shared { q: [usize; 3], caches: [usize; 2] },
    /// Raw, beside the raw keys and values that go to the caches and the weight of the keys' norm.
    Own { q: [usize; 3], caches: [usize; 2], kv: [usize; 3] },
}

/// What a dispatch does where the caches are written on the way, as in `split.wgsl`.
const STORE: u32 = 1;
const ATTEND: u32 = 2;

/// The dispatches of several tokens that are computed apart: those of one token side by side, after one that stores the keys and values
/// of all, if they are to be stored on the way.
pub(super) fn split_apart(
    (sizes, cut): (&Sizes, &Cut),
    cache: (Params, Element),
    (source, lie): (Source, Lie),
    facts: &DeviceFacts,
) -> Vec<Dispatch> {
    let blocks = (sizes.heads / sizes.kv_heads).div_ceil(cut.rows);
    let (params, element) = cache;
    let params = Params { token_blocks: word(blocks), ..params };
    let Source::Own { .. } = source else {
        return split((sizes, cut), (params, element), (source, lie), facts);
    };
    let attend = (Params { phase: ATTEND, ..params }, element);
    let dispatches = split((sizes, cut), attend, (source, lie), facts);
    // All tokens by one workgroup for each kv head, whatever their blocks.
    let mut storing =
        dispatches[0].clone().params(&Params { phase: STORE, token_blocks: 0, ..params });
    storing.grid = [1, 1, word(sizes.kv_heads)];
    [storing].into_iter().chain(dispatches).collect()
}

/// One dispatch, or two where the keys are split and what reads the result does not combine it itself; the second may write in another
/// order than row by row.
pub(super) fn split(
    (sizes, cut): (&Sizes, &Cut),
    (params, cache): (Params, Element),
    (source, lie): (Source, Lie),
    facts: &DeviceFacts,
) -> Vec<Dispatch> {
    let quads = sizes.width / 4;
    let places = sizes.tokens * sizes.heads;
    let own = matches!(source, Source::Own { .. });
    // One workgroup stores its tokens and then finds them in the caches like all others.
    let apart = own && cut.splits > 1;
    let splits = cut.splits + usize::from(apart);
    let blocks = match params.token_blocks {
        0 => sizes.rows().div_ceil(cut.rows),
        each => each as usize * sizes.tokens,
    };
    let params = Params { splits: word(splits), row_blocks: word(blocks), ..params };
    let (heads, tokens, tile, window) = (sizes.heads, sizes.tokens, cut.tile(), params.window);
    let left = HeadParts { heads, quads, splits, tile, apart, window, tokens, met: None };
    let (parts, met) = match lie {
        Lie::Parts(parts) => (parts.place(), parts.met),
        Lie::Rows(_) => (left.place(), None),
    };
    let dispatch = with_kv_splits(over_cache(&SPLIT, sizes, (params, cache)), splits, apart)
        .part(team(facts))
        .constant("WG", cut.group as u32)
        .constant("LANES", cut.lanes as u32)
        .constant("TEAMS", cut.teams() as u32)
        .constant("TILE", cut.tile() as u32)
        .constant("ROWS", cut.rows as u32);
    let dispatch = match cut.alone {
        true => dispatch
            .part(&ALONE)
            .constant("STAGED", cut.staged as u32)
            .constant("PARTNER", quads as u32 / 2)
            .constant("PAIRS", (quads / 2 / cut.lanes) as u32),
        false => dispatch
            .part(&TOGETHER)
            .constant("STAGED", if own { cut.staged } else { cut.rows } as u32)
            .constant("PARTS", (cut.group / quads).min(cut.teams()) as u32),
    };
    let into = if splits == 1 { Place::Output(0) } else { parts };
    let alone = own && splits == 1 && params.phase != ATTEND;
    let split = meeting(bind(dispatch, source, cache, into), met).grid(
        splits,
        if alone { 1 } else { blocks },
        sizes.kv_heads,
    );
    let order = match lie {
        Lie::Parts(_) => return vec![split],
        Lie::Rows(order) => order,
    };
    if splits == 1 {
        return vec![split];
    }
    // Lanes of a quad that meet by exchange.
    let (meet, exchange) = match facts.subgroups {
        Some(_) => (&EXCHANGED, cut.lanes.div_ceil(SLICE)),
        None => (&MEMORY, 1),
    };
    let combine = with_kv_splits(Dispatch::new(&COMBINE).keys(&params), splits, apart)
        .part(team(facts))
        .part(meet)
        .constant("MET", word(COMBINING / SLICE / exchange))
        .constant("TILE", cut.tile() as u32)
        .constant("WG", COMBINING as u32)
        .constant("LANES", cut.lanes as u32)
        .constant("WIDTH", sizes.width as u32)
        .constant("QUADS", quads as u32)
        .read(parts)
        .write(Place::Output(0))
        .grid(places, quads.div_ceil(SLICE), 1);
    vec![split, Order::lay(order, combine)]
}

/// With what is known of KV splits.
fn with_kv_splits(dispatch: Dispatch, splits: usize, apart: bool) -> Dispatch {
    dispatch.part(&KV_SPLITS).constant("SPLITS", word(splits)).constant("APART", u32::from(apart))
}

/// With the factor that meets what is found, where there is one.
fn meeting(dispatch: Dispatch, met: Option<Met>) -> Dispatch {
    let Some(met) = met else { return dispatch.part(&NOT_MET) };
    let spot = if dispatch.bindings.len() == SHARED_BINDINGS { &MET_SHARED } else { &MET_OWN };
    dispatch
        .part(&MET)
        .part(factor(met.dtype))
        .part(spot)
        .constant("MET_ROWS", met.rows as u32)
        .constant("MET_STRIDE", met.stride as u32)
        .read(Place::OfReader(met.input))
}

fn bind(dispatch: Dispatch, source: Source, cache: Element, into: Place) -> Dispatch {
    let read = |dispatch: Dispatch, all: &[usize]| {
        all.iter().copied().map(Place::Input).fold(dispatch, Dispatch::read)
    };
    match source {
        Source::Ready { q, caches } => read(read(dispatch.part(&READY), &caches).write(into), &[q]),
        Source::Shared { q, caches } => {
            read(read(dispatch.part(&SHARED).part(&TURNED), &caches).write(into), &q)
        }
        Source::Own { q, caches: [k_cache, v_cache], kv } => {
            let dispatch = dispatch.part(&OWN).part(&TURNED).part(kv_store(cache));
            let dispatch = dispatch.write(Place::Input(k_cache)).write(Place::Input(v_cache));
            read(read(dispatch.write(into), &q), &kv)
        }
    }
}
