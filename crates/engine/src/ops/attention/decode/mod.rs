//! Split-KV attention of up to 8 tokens: a workgroup computes one KV split for rows that share a kv head; a second dispatch, or the op that
//! reads the heads, combines the partials.

mod tiling;

pub(super) use tiling::{RowForm, SplitKvTiling};

use super::problem::{Params, Problem, word};
use crate::{
    gpu::{
        BufferRef, DeviceFacts, Dispatch, F16Columns, Kernel, Layout, LoraPartials, Part,
        SplitKvPartials,
    },
    graph::{Element, Type},
    ops::{
        HeadForm, RopePairs,
        add_norm::gpu::lanes,
        matmul::lora::weight_part,
        parts::{kv_store, reduce, team},
        sequences::Paging,
    },
};

static SPLIT_KV: Kernel =
    Kernel { name: "attention/split_kv", source: include_str!("split_kv.wgsl") };
static COMBINE: Kernel = Kernel { name: "attention/combine", source: include_str!("combine.wgsl") };

static COMBINE_F16: Kernel =
    Kernel { name: "attention/combine_f16", source: include_str!("combine_f16.wgsl") };

static PARTIALS: Part =
    Part { kind: "partials", name: "partials", source: include_str!("partials.wgsl") };
static KV_SPLITS: Part =
    Part { kind: "kv_splits", name: "kv_splits", source: include_str!("kv_splits.wgsl") };
static EMPTY_SPLIT: Part =
    Part { kind: "empty_split", name: "empty_split", source: include_str!("empty_split.wgsl") };
static NORM_ROPE: Part =
    Part { kind: "norm_rope", name: "norm_rope", source: include_str!("norm_rope.wgsl") };

/// Lanes per workgroup of the combine kernel.
const COMBINE_LANES: usize = 256;
/// vec4s of a head per workgroup of the combine kernel, as in `combine.wgsl`.
const COMBINE_VEC4S: usize = 8;

/// What the kernel writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// Whole rows, in this layout if not row-major.
    Rows(Option<Layout>),
    /// Whole rows as f16 columns; only if keys are split.
    F16Columns(F16Columns),
    /// Split-KV partials, combined by the op that reads the heads.
    Partials(SplitKvPartials),
}

/// The form of the queries, and whether the kernel stores new keys and values; fields are input indices.
#[derive(Debug, Clone, Copy)]
pub(super) enum Queries {
    /// Normed and rotated, over caches that hold all keys.
    Prepared { q: usize, caches: [usize; 2] },
    /// Raw, with the weight of their norm and the RoPE table, over caches that hold all keys.
    Raw { q: [usize; 3], caches: [usize; 2], form: HeadForm },
    /// [`Self::Raw`] plus raw keys, raw values and the weight of the keys' norm, which the kernel first stores in the caches.
    RawStore { q: [usize; 3], caches: [usize; 2], kv: [usize; 3], form: HeadForm },
}

/// What a dispatch does with new keys and values, as in `split_kv.wgsl`; 0: stores them and attends.
const STORE: u32 = 1;
const ATTEND: u32 = 2;

/// A split-KV problem with everything its dispatches need.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitKv<'a> {
    pub(super) problem: &'a Problem,
    pub(super) tiling: &'a SplitKvTiling,
    pub(super) params: Params,
    /// The element type of the KV caches.
    pub(super) cache: Element,
    pub(super) queries: Queries,
    pub(super) output: Output,
    /// With a KV pool: the paging, and the input of the sequences.
    pub(super) sequences: Option<(Paging, usize, &'a Type)>,
    pub(super) facts: &'a DeviceFacts,
}

impl SplitKv<'_> {
    /// One dispatch, or two if keys are split and the reader does not combine the partials.
    pub(super) fn dispatches(&self) -> Vec<Dispatch> {
        let splits = self.splits();
        let (attend, partials) = self.attend(splits);
        match self.output {
            Output::Rows(order) if splits > 1 => {
                vec![attend, Layout::stored(order, self.combine(splits, partials))]
            }
            Output::F16Columns(columns) => {
                vec![attend, self.combine_f16(columns, splits, partials)]
            }
            _ => vec![attend],
        }
    }

    /// The dispatches of several batch-invariant tokens: one for each token, preceded by one that stores the keys and values of all tokens if
    /// this kernel stores them.
    pub(super) fn batch_invariant(mut self) -> Vec<Dispatch> {
        let problem = self.problem;
        let blocks = (problem.heads / problem.kv_heads).div_ceil(self.tiling.rows);
        let params = Params { token_blocks: word(blocks), ..self.params };
        if !self.stores() {
            return Self { params, ..self }.dispatches();
        }
        self.params = Params { phase: ATTEND, ..params };
        let attend = self.dispatches();
        // One workgroup per kv head stores all tokens, whatever their blocks of rows.
        let params = Params { phase: STORE, token_blocks: 0, ..params };
        let mut store = attend[0].clone().params(&params);
        store.grid = [1, 1, word(problem.kv_heads)];
        [store].into_iter().chain(attend).collect()
    }

    /// Whether this kernel stores new keys and values.
    fn stores(&self) -> bool {
        matches!(self.queries, Queries::RawStore { .. })
    }

    /// Whether the pass's own keys are a separate KV split: one workgroup stores and reads them, the others read keys of earlier passes.
    fn has_own_split(&self) -> bool {
        self.stores() && self.tiling.splits > 1
    }

    fn splits(&self) -> usize {
        self.tiling.splits + usize::from(self.has_own_split())
    }

    /// The parameters of all dispatches.
    fn params(&self, splits: usize) -> Params {
        let blocks = match self.params.token_blocks {
            0 => self.problem.rows().div_ceil(self.tiling.rows),
            each => each as usize * self.problem.tokens,
        };
        Params { splits: word(splits), row_blocks: word(blocks), ..self.params }
    }

    /// The dispatch over the KV splits, and the buffer of its partials.
    fn attend(&self, splits: usize) -> (Dispatch, BufferRef) {
        let (problem, tiling, params) = (self.problem, self.tiling, self.params(splits));
        let vec4s = problem.vec4s();
        let (partials, lora) = match self.output {
            Output::Partials(partials) => (partials.buffer(), partials.lora),
            Output::Rows(_) | Output::F16Columns(_) => (self.partials(splits).buffer(), None),
        };
        let dispatch = problem
            .over_cache(&SPLIT_KV, &params, self.cache)
            .part(team(self.facts))
            .constant("WG", word(tiling.workgroup))
            .constant("LANES", word(tiling.lanes))
            .constant("TEAMS", word(tiling.teams()))
            .constant("TILE", word(tiling.tile()))
            .constant("ROWS", word(tiling.rows));
        let dispatch = match tiling.form {
            RowForm::Single => dispatch
                .part(part!("rows", "single_row"))
                .constant("STAGED", word(tiling.staged))
                .constant("PARTNER", word(vec4s / 2))
                .constant("PAIRS", word(vec4s / 2 / tiling.lanes)),
            RowForm::Grouped => dispatch
                .part(part!("rows", "grouped_row"))
                .constant("STAGED", word(if self.stores() { tiling.staged } else { tiling.rows }))
                .constant("PARTS", word((tiling.workgroup / vec4s).min(tiling.teams()))),
        };
        let into = if splits == 1 { BufferRef::Output(0) } else { partials };
        // A workgroup that stores keys without splits computes all rows itself.
        let one_block = self.stores() && splits == 1 && params.phase != ATTEND;
        let blocks = if one_block { 1 } else { params.row_blocks as usize };
        let dispatch = with_lora(self.bind(self.with_kv_splits(dispatch, splits), into), lora);
        let dispatch = match self.sequences {
            Some(_) => self.with_sequences(dispatch).part(&EMPTY_SPLIT),
            None => dispatch,
        };
        (dispatch.grid(splits, blocks, problem.kv_heads), partials)
    }

    /// The dispatch that combines the KV splits into rows.
    fn combine(&self, splits: usize, partials: BufferRef) -> Dispatch {
        let (problem, lanes) = (self.problem, self.tiling.lanes);
        // Lanes of one vec4 that a subgroup reduces.
        let (split_reduce, reduced) = match self.facts.subgroups {
            Some(_) => (part!("split_reduce", "subgroup"), lanes.div_ceil(COMBINE_VEC4S)),
            None => (part!("split_reduce", "workgroup"), 1),
        };
        let dispatch = Dispatch::new(&COMBINE).indexing(&self.params(splits));
        let dispatch = self
            .with_kv_splits(dispatch, splits)
            .part(&PARTIALS)
            .part(team(self.facts))
            .part(split_reduce)
            .constant("REDUCED", word(COMBINE_LANES / COMBINE_VEC4S / reduced))
            .constant("TILE", word(self.tiling.tile()))
            .constant("WG", word(COMBINE_LANES))
            .constant("LANES", word(lanes))
            .constant("WIDTH", word(problem.width))
            .constant("DIM4", word(problem.vec4s()))
            .read(partials)
            .write(BufferRef::Output(0))
            .grid(problem.tokens * problem.heads, problem.vec4s().div_ceil(COMBINE_VEC4S), 1);
        self.with_sequences(dispatch)
    }

    /// The dispatch that combines the KV splits into f16 columns.
    fn combine_f16(&self, columns: F16Columns, splits: usize, partials: BufferRef) -> Dispatch {
        let problem = self.problem;
        let width = problem.heads * problem.width;
        let dispatch = Dispatch::new(&COMBINE_F16).indexing(&self.params(splits));
        let dispatch = F16Columns::stored(Some(columns), self.with_kv_splits(dispatch, splits))
            .part(&PARTIALS)
            .part(reduce(self.facts))
            .constant("TILE", word(self.tiling.tile()))
            .constant("WG", lanes(width, self.facts))
            .constant("WIDTH", word(problem.width))
            .constant("DIM4", word(problem.vec4s()))
            .read(partials)
            .write(BufferRef::Output(0))
            .grid(problem.tokens, 1, 1);
        self.with_sequences(dispatch)
    }

    /// Binds the sequences of the pass, if any.
    fn with_sequences(&self, dispatch: Dispatch) -> Dispatch {
        match self.sequences {
            Some((paging, input, ty)) => dispatch.sequences(paging, input, ty),
            None => dispatch,
        }
    }

    /// The partials that the second dispatch combines.
    fn partials(&self, splits: usize) -> SplitKvPartials {
        SplitKvPartials {
            heads: self.problem.heads,
            vec4s: self.problem.vec4s(),
            splits,
            tile: self.tiling.tile(),
            own_key: self.has_own_split(),
            window: self.params.window,
            tokens: self.problem.tokens,
            paged: self.sequences.is_some(),
            lora: None,
        }
    }

    fn with_kv_splits(&self, dispatch: Dispatch, splits: usize) -> Dispatch {
        dispatch
            .part(&KV_SPLITS)
            .constant("SPLITS", word(splits))
            .constant("OWN_SPLIT", u32::from(self.has_own_split()))
    }

    /// Binds the inputs of the op and the output buffer.
    fn bind(&self, dispatch: Dispatch, into: BufferRef) -> Dispatch {
        let read = |dispatch: Dispatch, all: &[usize]| {
            all.iter().copied().map(BufferRef::Input).fold(dispatch, Dispatch::read)
        };
        match self.queries {
            Queries::Prepared { q, caches } => {
                let dispatch = dispatch.part(part!("queries", "prepared"));
                read(read(dispatch, &caches).write(into), &[q])
            }
            Queries::Raw { q, caches, form } => {
                let dispatch = with_form(form, dispatch.part(part!("queries", "raw")));
                read(read(dispatch, &caches).write(into), &q)
            }
            Queries::RawStore { q, caches: [k_cache, v_cache], kv, form } => {
                let dispatch = with_form(form, dispatch.part(part!("queries", "raw_store")))
                    .part(kv_store(self.cache));
                let dispatch =
                    dispatch.write(BufferRef::Input(k_cache)).write(BufferRef::Input(v_cache));
                read(read(dispatch.write(into), &q), &kv)
            }
        }
    }
}

/// Adds the part that norms and rotates heads of this form.
fn with_form(form: HeadForm, dispatch: Dispatch) -> Dispatch {
    let dispatch = form.norms(dispatch.part(&NORM_ROPE));
    match form.pairs {
        RopePairs::Halves => dispatch,
        RopePairs::Adjacent => dispatch.constant("ADJACENT", 1u32),
    }
}

/// Adds LoRA A of the projection that reads the heads, if each partial is multiplied with it here.
fn with_lora(dispatch: Dispatch, lora: Option<LoraPartials>) -> Dispatch {
    let Some(lora) = lora else { return dispatch.part(part!("lora_a", "none")) };
    dispatch
        .part(part!("lora_a", "fused"))
        .part(weight_part(lora.dtype))
        .constant("LORA_ROWS", word(lora.rows))
        .constant("LORA_STRIDE", word(lora.stride))
        .read_as("lora_a", BufferRef::ReaderInput(lora.input))
}
