//! The op on normed and rotated queries.

use super::{
    decode::{Output, Queries, SplitKv},
    encoder::{self, pack::Heads},
    mask::{Mask, causal},
    prefill,
    problem::Problem,
    reference::Reference,
    select::{Form, select},
};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, Op, Step, Type, Value},
    ops::sequences::{Paging, RowPlaces, Sequences},
    precision::Q8_GROUP,
};

/// Attention of `q` `[t, h, e]` over the KV caches, or the keys and values of the pass, `[slots, k, e]`: `[t, h·e]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention {
    /// Which keys a token sees.
    pub mask: Mask,
    /// With a KV pool: how the rows belong to sequences; the last input then holds the sequences.
    pub paging: Option<Paging>,
}

impl Graph {
    /// Causal attention of queries `[t, h, e]` over KV caches `[slots, k, e]`: `[t, h·e]`.
    ///
    /// The caches already hold the tokens of the pass. With a window, `slots` is at least `window + t − 1`, or no pass exceeds it.
    pub fn attention(
        &mut self,
        q: Value,
        k_cache: Value,
        v_cache: Value,
        window: Option<u32>,
    ) -> Value {
        self.attention_paged(q, (k_cache, v_cache), window, None)
    }

    /// [`Graph::attention`] over KV caches that may be pools of pages.
    pub fn attention_paged(
        &mut self,
        q: Value,
        (k_cache, v_cache): (Value, Value),
        window: Option<u32>,
        sequences: Option<Sequences>,
    ) -> Value {
        let paging = sequences.map(|sequences| sequences.paging);
        let op = Attention { mask: Mask::Causal { window }, paging };
        let inputs = Self::with_sequences(vec![q, k_cache, v_cache], sequences);
        self.apply(op, &inputs)
    }

    /// As [`Graph::attention`] with a window, where tokens of a block also see the rest of it ([`Mask::Block`]).
    ///
    /// `block_ends` `u32[t]` holds for each token the position one past the end of its block, or 0. All tokens of a block are in one pass; `slots` is
    /// as in [`Graph::attention`].
    pub fn attention_block(
        &mut self,
        q: Value,
        (k_cache, v_cache): (Value, Value),
        window: u32,
        block_ends: Value,
    ) -> Value {
        self.attention_block_paged(q, (k_cache, v_cache), (window, block_ends), None)
    }

    /// [`Graph::attention_block`] over KV caches that may be pools of pages.
    pub fn attention_block_paged(
        &mut self,
        q: Value,
        (k_cache, v_cache): (Value, Value),
        (window, block_ends): (u32, Value),
        sequences: Option<Sequences>,
    ) -> Value {
        let paging = sequences.map(|sequences| sequences.paging);
        let op = Attention { mask: Mask::Block { window }, paging };
        let inputs = Self::with_sequences(vec![q, k_cache, v_cache, block_ends], sequences);
        self.apply(op, &inputs)
    }

    /// Bidirectional attention of all live tokens of a pass over each other, without a KV cache: `q` `[t, h, e]`, `k` and `v` `[t, k, e]` give
    /// `[t, h·e]`.
    pub fn attention_bidirectional(&mut self, q: Value, k: Value, v: Value) -> Value {
        self.apply(Attention { mask: Mask::Bidirectional, paging: None }, &[q, k, v])
    }

    /// Attention of each token over its range of positions `u32[t, 2]` ([`Mask::Packed`]): `[t, h·e]`. Values may be rows `[slots, k·e]`.
    pub fn attention_packed(&mut self, q: Value, k: Value, v: Value, ranges: Value) -> Value {
        self.apply(Attention { mask: Mask::Packed, paging: None }, &[q, k, v, ranges])
    }
}

impl Attention {
    /// The head width must be a multiple of this for kernels over KV caches.
    pub const HEAD_STEP: usize = 16;
    /// The head width must be a multiple of this for [`Element::Q8`] caches, whose scales cover whole groups of a head.
    pub const Q8_HEAD_STEP: usize = Q8_GROUP;
    /// The head width must be a multiple of this for encoder kernels, which read keys and values in f32.
    pub const ENCODER_HEAD_STEP: usize = 8;
    /// The maximum head width.
    pub const MAX_HEAD: usize = 512;
    /// The maximum number of query heads: grids have one workgroup per head and token, and at most 65,535.
    pub const MAX_HEADS: usize = 256;

    /// The head width must be a multiple of this under the mask.
    fn head_step(&self) -> usize {
        match self.mask {
            Mask::Causal { .. } | Mask::Block { .. } => Self::HEAD_STEP,
            Mask::Bidirectional | Mask::Packed => Self::ENCODER_HEAD_STEP,
        }
    }
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let inputs = match (self.paging, inputs) {
            (Some(paging), [inputs @ .., sequences]) => {
                paging.check(sequences, inputs[0].shape.dims()[0], inputs[1]);
                inputs
            }
            _ => inputs,
        };
        let ([q, k, v] | [q, k, v, _]) = inputs else { panic!("attention takes q, k and v") };
        let ([t, heads, width], [slots, kv_heads, kv_width]) = (q.shape.dims(), k.shape.dims())
        else {
            panic!("attention: {q} over {k}")
        };
        let alike = match self.mask {
            Mask::Packed => k.element == v.element && k.shape.len() == v.shape.len(),
            _ => k == v,
        };
        assert!(alike, "attention: keys {k} and values {v} are stored alike");
        assert!(width == kv_width && heads.is_multiple_of(*kv_heads), "attention: {q} over {k}");
        let fits = width.is_multiple_of(self.head_step()) && *width <= Self::MAX_HEAD;
        assert!(fits, "attention: heads of {width}");
        let whole = k.element != Element::Q8 || width.is_multiple_of(Q8_GROUP);
        assert!(whole, "attention: heads of {width} are no whole groups of {k}");
        let input = inputs.get(Mask::INPUT).map(|ty| (*ty).clone());
        match self.mask {
            Mask::Causal { .. } => assert_eq!(input, None, "attention: a causal mask has no input"),
            Mask::Block { .. } => {
                assert_eq!(input, Some(Type::u32([*t])), "attention: the end of each token's block")
            }
            Mask::Bidirectional => {
                assert_eq!(input, None, "attention: a bidirectional mask has no input");
                assert_eq!(t, slots, "attention: {q} over {k}, bidirectional");
            }
            Mask::Packed => {
                let ranges = Some(Type::u32([*t, 2]));
                assert_eq!(input, ranges, "attention: the range of keys of each token");
            }
        }
        vec![Type::f32([*t, heads * width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v) = (call.f32(0), call.f32(1), call.f32(2));
        let (tokens, heads) = (call.input(0).shape.dims()[0], call.input(0).shape.dims()[1]);
        let input = self.mask.has_input().then(|| call.u32(Mask::INPUT));
        let live = (call.step.count as usize).min(tokens);
        let step = Step { count: live as u32, ..*call.step };
        let visible = self.mask.visible(&step, input.as_deref());
        let sequences = call.sequences(self.paging);
        let sequences = sequences.as_ref().map(|(paging, words, ty)| (*paging, &words[..], *ty));
        let places = RowPlaces::new(&step, call.input(1).shape.dims()[0], sequences);
        let reference = Reference::new((&q, heads), (&k, &v, call.input(1)), (visible, places));
        reference.attend(live, &mut call.out(0));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let problem = Problem::new(self.mask, call).paged(self.paging);
        let cache = call.input(1).element;
        match select(&problem, call.facts) {
            Form::SplitKv(tiling) => SplitKv {
                problem: &problem,
                tiling: &tiling,
                params: problem.params(),
                cache,
                queries: Queries::Prepared { q: 0, caches: [1, 2] },
                output: Output::Rows(None),
                sequences: problem.sequences(call),
                facts: call.facts,
            }
            .dispatches(),
            Form::EncoderFlashMatrix(units) => {
                encoder::flash_matrix::dispatches(&problem, &Heads::prepared(call), units)
            }
            Form::EncoderFlash(flash) => vec![flash.dispatch(&problem)],
            Form::Flash(tile) => {
                let flash = self.mask.apply(prefill::dispatch(&problem, cache, tile));
                vec![problem.with_sequences(flash, call)]
            }
        }
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let (q, slots) = (&inputs[0].shape, inputs[1].shape.dims()[0]);
        let keys = self.mask.window().map_or(slots, |window| slots.min(window as usize));
        4 * q.len() as u64 * keys as u64
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let (Mask::Causal { .. } | Mask::Block { .. }) = self.mask else {
            return inputs.iter().map(|ty| ty.bytes()).sum();
        };
        let (first, slots) = (step.position as usize, inputs[1].shape.dims()[0]);
        let end = first + step.count as usize;
        let seen = (end - causal(self.mask.window(), first).start).min(slots) as u64;
        let slot = inputs[1].bytes() / (slots as u64).max(1);
        inputs[0].bytes() + 2 * slot * seen
    }
}
