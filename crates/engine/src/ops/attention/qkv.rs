//! Attention of up to 8 tokens from the raw projections of a layer: [`QkvRope`] (head norms, RoPE, KV cache writes) and [`Attention`] fused.

use super::{
    decode::{Output, Queries, SplitKv, SplitKvTiling},
    forward::Attention,
    mask::Mask,
    problem::{Params, Problem, word},
    reference::Reference,
    select::{DECODE_TOKENS, split_kv_tiling},
};
use crate::{
    cpu::CpuCall,
    gpu::{DeviceFacts, Dispatch, Edge, GpuCall, SplitKvPartials},
    graph::{Graph, Op, Step, Type, Value},
    ops::{
        Columns, HeadForm, KvStoreInputs, QkvRope, Slice,
        head_norm_rope::{assert_table, gpu::store as store_kv, store_heads},
        sequences::{Paging, RowPlaces, Sequences},
    },
};

/// Causal attention from raw projections.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionQkv {
    /// The number of positions a token sees, including itself; `None`: all.
    pub window: Option<u32>,
    /// How heads are prepared.
    pub form: HeadForm,
    /// The columns of the queries' heads.
    pub q: Columns,
    /// The columns of keys and values, if the layer writes its KV caches.
    pub kv: Option<[Columns; 2]>,
    /// With KV pools: how the rows belong to sequences; the last input then holds the sequences.
    pub paging: Option<Paging>,
}

/// The queries of a layer and the KV caches they read.
#[derive(Debug, Clone, Copy)]
pub struct QueryInputs {
    /// Raw queries `[t, h·e]`.
    pub q: Slice,
    /// Weight of their norm `[e]`; `rope` again if they have none.
    pub q_norm: Value,
    /// Cosines and sines `[t, e/2, 2]`.
    pub rope: Value,
    /// State `[slots, k, e]` of normed and rotated keys.
    pub k_cache: Value,
    /// State `[slots, k, e]` of normed values.
    pub v_cache: Value,
    /// With KV pools, the sequences of the pass.
    pub sequences: Option<Sequences>,
}

/// The keys and values that a layer appends to its KV caches.
#[derive(Debug, Clone, Copy)]
pub struct NewKv {
    /// Raw keys `[t, k·e]`.
    pub k: Slice,
    /// Raw values `[t, k·e]`; the raw keys again if a layer has no value projection.
    pub v: Slice,
    /// Weight of the keys' norm `[e]`; the RoPE table if they have none.
    pub k_norm: Value,
}

/// Input indices; the last three only if the layer writes its caches. Sequences follow, if any.
mod input {
    pub(super) const Q: usize = 0;
    pub(super) const Q_NORM: usize = 1;
    pub(super) const ROPE: usize = 2;
    pub(super) const K_CACHE: usize = 3;
    pub(super) const V_CACHE: usize = 4;
    pub(super) const K: usize = 5;
    pub(super) const V: usize = 6;
    pub(super) const K_NORM: usize = 7;
}

/// The inputs of `QkvRope`, as input indices of this op.
const STORED: [usize; 6] =
    [input::K, input::V, input::K_NORM, input::ROPE, input::K_CACHE, input::V_CACHE];

impl Graph {
    /// Raw queries over KV caches, to which a layer that owns them first appends its keys and values: `[t, h·e]`.
    ///
    /// Up to 8 tokens, or those of different sequences, take one op; more take [`Graph::qkv_rope`] (or [`Graph::head_norm_rope`]) and
    /// [`Graph::attention`]. With a window, `slots` is at least `window + t − 1`, or no pass exceeds it.
    pub fn attention_qkv(
        &mut self,
        queries: QueryInputs,
        new_kv: Option<NewKv>,
        window: Option<u32>,
        form: impl Into<HeadForm>,
    ) -> Value {
        let form = form.into();
        let QueryInputs { q, q_norm, rope, k_cache, v_cache, sequences } = queries;
        let has_batched_rows = sequences.is_some_and(|sequences| !sequences.paging.one_sequence);
        if self.ty(q.value).shape.rows() <= DECODE_TOKENS || has_batched_rows {
            let columns = |slice: Slice| slice.columns(self);
            let kv = new_kv.map(|kv| [columns(kv.k), columns(kv.v)]);
            let paging = sequences.map(|sequences| sequences.paging);
            let op = AttentionQkv { window, form, q: columns(q), kv, paging };
            let mut inputs = vec![q.value, q_norm, rope, k_cache, v_cache];
            inputs.extend(new_kv.iter().flat_map(|kv| [kv.k.value, kv.v.value, kv.k_norm]));
            let inputs = Self::with_sequences(inputs, sequences);
            return self.apply(op, &inputs);
        }
        let q = match new_kv {
            None => self.head_norm_rope(q, q_norm, rope, form),
            Some(NewKv { k, v, k_norm }) => self.qkv_rope(
                q,
                q_norm,
                KvStoreInputs { k, v, k_norm, rope, k_cache, v_cache, sequences },
                form,
            ),
        };
        self.attention_paged(q, (k_cache, v_cache), window, sequences)
    }
}

impl AttentionQkv {
    /// The op that writes the KV caches, if this one includes it.
    fn store(&self, width: usize) -> Option<QkvRope> {
        let (form, paging) = (self.form, self.paging);
        self.kv.map(|[k, v]| QkvRope { width, form, k, v, q: None, paging })
    }
}

impl Op for AttentionQkv {
    fn name(&self) -> &'static str {
        "attention_qkv"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (q, t) = (inputs[input::Q], inputs[input::Q].shape.rows());
        let width = inputs[input::K_CACHE].shape.width();
        let fits = t <= DECODE_TOKENS || self.has_batched_rows();
        assert!(fits, "attention_qkv: {t} tokens of a sequence, {DECODE_TOKENS} at most");
        assert_table(inputs[input::ROPE], t, width);
        let sequences = self.paging.map(|_| inputs[inputs.len() - 1]);
        if let Some(stored) = self.store(width) {
            let stored_inputs = STORED.iter().map(|i| inputs[*i]).chain(sequences);
            stored.infer(&stored_inputs.collect::<Vec<_>>());
            assert_eq!(inputs[input::K].shape.rows(), t, "attention_qkv: keys for {q}");
        }
        let rotated = Type::f32([t, self.q.heads(q, width), width]);
        let caches = [inputs[input::K_CACHE], inputs[input::V_CACHE]];
        let attention = [&rotated].into_iter().chain(caches).chain(sequences);
        self.attention().infer(&attention.collect::<Vec<_>>())
    }

    fn writes(&self) -> &'static [usize] {
        if self.kv.is_some() { &[input::K_CACHE, input::V_CACHE] } else { &[] }
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let width = call.input(input::K_CACHE).shape.width();
        if let Some(stored) = self.store(width) {
            store_heads(&stored, STORED, call);
        }
        let (q, rope) = (call.f32(input::Q), call.f32(input::ROPE));
        let q_norm = call.decoded(input::Q_NORM);
        let mut rotated = vec![0.0; call.output(0).shape.len()];
        for (token, rotated) in rotated.chunks_exact_mut(self.q.width).enumerate() {
            let q = self.q.of(&q, call.input(input::Q), token);
            for (q, rotated) in q.chunks_exact(width).zip(rotated.chunks_exact_mut(width)) {
                let angles = &rope[token * width..][..width];
                self.form.query(q, &q_norm, angles, rotated);
            }
        }
        let (k, v) = (call.f32(input::K_CACHE), call.f32(input::V_CACHE));
        let visible = self.mask().visible(call.step, None);
        let queries = (rotated.as_slice(), self.q.width / width);
        let cache = call.input(input::K_CACHE);
        let sequences = call.sequences(self.paging);
        let sequences = sequences.as_ref().map(|(paging, words, ty)| (*paging, &words[..], *ty));
        let places = RowPlaces::new(call.step, cache.shape.dims()[0], sequences);
        let reference = Reference::new(queries, (&k, &v, cache), (visible, places));
        reference.attend(call.step.count as usize, &mut call.out(0));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let (problem, cache) = (self.problem(call), call.input(input::K_CACHE).element);
        let [(q_first, q_stride), (k_first, k_stride), (v_first, v_stride)] = self.places(call);
        let params = Params {
            eps: self.form.eps,
            q_first,
            q_stride,
            k_first,
            k_stride,
            v_first,
            v_stride,
            ..problem.params()
        };
        let output = match call.result_edge(0) {
            Edge::SplitKv(partials) => Output::Partials(partials),
            Edge::F16Columns(columns) => Output::F16Columns(columns),
            edge => Output::Rows(edge.layout()),
        };
        let (q, caches) =
            ([input::Q, input::Q_NORM, input::ROPE], [input::K_CACHE, input::V_CACHE]);
        let (tiling, raw) = (self.tiling(call), Queries::Raw { q, caches, form: self.form });
        let store = self.store(problem.width);
        let (queries, stored) = match store {
            Some(_) if self.fuses(call) => {
                let kv = [input::K, input::V, input::K_NORM];
                (Queries::RawStore { q, caches, kv, form: self.form }, None)
            }
            store => (raw, store.map(|store| store_kv(&store, STORED, call))),
        };
        let split_kv = SplitKv {
            problem: &problem,
            tiling: &tiling,
            params,
            cache,
            queries,
            output,
            sequences: problem.sequences(call),
            facts: call.facts,
        };
        let attend = match self.row_by_row(call) && problem.tokens > 1 {
            true => split_kv.batch_invariant(),
            false => split_kv.dispatches(),
        };
        stored.into_iter().chain(attend).collect()
    }

    fn stores(&self, call: &GpuCall<'_>, _: usize, preferred: Edge) -> Edge {
        match preferred {
            Edge::F16Columns(_) if self.tiling(call).splits > 1 => preferred,
            Edge::Permuted(layout) if self.tiling(call).splits > 1 => {
                Edge::Permuted(layout.of_floats())
            }
            Edge::RowMajor => self.partials(call).map_or(Edge::RowMajor, Edge::SplitKv),
            _ => Edge::RowMajor,
        }
    }

    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let slots = inputs[input::K_CACHE].shape.dims()[0];
        let keys = self.window.map_or(slots, |window| slots.min(window as usize));
        4 * outputs[0].shape.len() as u64 * keys as u64
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let queries = [inputs[input::Q], inputs[input::K_CACHE], inputs[input::V_CACHE]];
        let others = inputs
            .iter()
            .enumerate()
            .filter(|(i, _)| ![input::Q, input::K_CACHE, input::V_CACHE].contains(i));
        self.attention().bytes_read(&queries, step) + others.map(|(_, ty)| ty.bytes()).sum::<u64>()
    }
}

impl AttentionQkv {
    /// The partials that it can leave to its reader to combine.
    fn partials(&self, call: &GpuCall<'_>) -> Option<SplitKvPartials> {
        let (problem, tiling) = (self.problem(call), self.tiling(call));
        // The pass's own keys are a separate split if this op stores them.
        let own_key = self.kv.is_some() && self.fuses(call);
        let parts = SplitKvPartials {
            heads: problem.heads,
            vec4s: problem.vec4s(),
            splits: tiling.splits + usize::from(own_key),
            tile: tiling.tile(),
            own_key,
            window: self.window.unwrap_or(u32::MAX),
            tokens: problem.tokens,
            paged: self.paging.is_some(),
            lora: None,
        };
        tiling.reader_combines().then_some(parts)
    }

    fn mask(&self) -> Mask {
        Mask::Causal { window: self.window }
    }

    fn attention(&self) -> Attention {
        Attention { mask: self.mask(), paging: self.paging }
    }

    fn problem(&self, call: &GpuCall<'_>) -> Problem {
        let (q, cache) = (call.input(input::Q), call.input(input::K_CACHE));
        let heads = self.q.heads(q, cache.shape.width());
        Problem::raw(self.mask(), q.shape.rows(), heads, cache).paged(self.paging)
    }

    /// Whether one dispatch writes the caches and reads them: a kernel can bind all buffers, and there are few rows. One workgroup writes the keys of
    /// all rows of a kv head, which takes longer than a separate dispatch if there are many.
    fn fuses(&self, call: &GpuCall<'_>) -> bool {
        let few_rows = call.input(input::Q).shape.rows() <= DECODE_TOKENS;
        few_rows && fuses(call.facts, self.paging.is_some())
    }

    /// Whether rows belong to different sequences.
    fn has_batched_rows(&self) -> bool {
        self.paging.is_some_and(|paging| !paging.one_sequence)
    }

    /// Whether each row is computed separately: rows that must be batch-invariant, or see different keys.
    fn row_by_row(&self, call: &GpuCall<'_>) -> bool {
        call.is_batch_invariant() || self.has_batched_rows()
    }

    /// The assignment of rows and keys to workgroups; rows that are computed separately use the tiling of a single one.
    fn tiling(&self, call: &GpuCall<'_>) -> SplitKvTiling {
        let problem = self.problem(call);
        let tokens = if self.row_by_row(call) { 1 } else { problem.tokens };
        split_kv_tiling(&Problem { tokens, ..problem }, call.facts)
    }

    /// First vec4 of the raw queries, keys and values in their rows, and the row length in vec4s.
    fn places(&self, call: &GpuCall<'_>) -> [(u32, u32); 3] {
        let place = |columns: Columns, i: usize| {
            (word(columns.first / 4), word(call.input(i).shape.width() / 4))
        };
        let kv = self.kv.map(|[k, v]| [place(k, input::K), place(v, input::V)]);
        let [k, v] = kv.unwrap_or_default();
        [place(self.q, input::Q), k, v]
    }
}

/// Whether a kernel can bind all buffers to write the caches and read them, with or without paged sequences.
fn fuses(facts: &DeviceFacts, paged: bool) -> bool {
    const BUFFERS: u32 = 9;
    facts.storage_buffers >= BUFFERS + u32::from(paged)
}

#[cfg(test)]
mod tests {
    use super::fuses;
    use crate::gpu::DeviceFacts;

    #[test]
    fn the_kernel_writes_the_caches_if_it_can_bind_nine_buffers() {
        assert!(!fuses(&DeviceFacts::floor(), false));
        let nine = DeviceFacts { storage_buffers: 9, ..DeviceFacts::floor() };
        assert!(fuses(&nine, false) && !fuses(&nine, true));
        assert!(fuses(&DeviceFacts { storage_buffers: 10, ..nine }, true));
    }
}
