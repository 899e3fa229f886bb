//! `o[t, h, :] = Σ_j softmax_j(q[t, h, :] · k[j, h / g, :]) · v[j, h / g, :]` over the positions `j` that token `t` sees.
//!
//! Token `t` stands at position `p = position + t` and sees `max(0, p − window + 1) ..= p`; position `j` lies in slot `j % slots`
//! of its cache. `g = heads / kv heads` neighbouring query heads share a kv head. Scores are not scaled. Tokens beyond the live
//! ones give zeros. Where tokens belong to blocks (of an image, say), a token also sees what follows it in its block.

mod bidirectional;
pub(crate) mod bidirectional_cases;
mod blocks;
pub(crate) mod cases;
mod choice;
mod gpu;
mod heads;
mod params;
mod plain_rows;
mod plane;
mod qkv;
mod qkv_cases;
mod reference;
mod spans;
pub(crate) mod spans_cases;
mod split;
mod train;

pub use bidirectional::AttentionBidirectional;
pub use plane::AttentionPlane;
pub use qkv::{AttentionQkv, OwnValues, QueryValues};
pub use spans::AttentionSpans;
pub use train::{AttentionGrad, AttentionTrain};

use self::reference::Reference;
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, Op, Step, Type, Value},
    precision::Q8_GROUP,
};

/// Where blocks end, if there are any, is the input of this number.
const BLOCKS_INPUT: usize = 3;

/// Attention over a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention {
    /// How many positions a token sees, itself included; all if there is no window.
    pub window: Option<u32>,
}

impl Graph {
    /// Queries `[t, h, e]` over the caches `[slots, k, e]`: `[t, h·e]`.
    ///
    /// The caches already hold the run's own tokens. With a window, `slots` is at least `window + t − 1`, or no run goes
    /// beyond it.
    pub fn attention(
        &mut self,
        q: Value,
        k_cache: Value,
        v_cache: Value,
        window: Option<u32>,
    ) -> Value {
        self.apply(Attention { window }, &[q, k_cache, v_cache])
    }

    /// As [`Graph::attention`] with a window, where tokens of a block also see the rest of it.
    ///
    /// `blocks` holds for each token the position one past the end of its block, or 0. A block lies wholly in one run; slots are as
    /// many as for [`Graph::attention`].
    pub fn attention_blocks(
        &mut self,
        q: Value,
        (k_cache, v_cache): (Value, Value),
        window: u32,
        blocks: Value,
    ) -> Value {
        self.apply(Attention { window: Some(window) }, &[q, k_cache, v_cache, blocks])
    }
}

impl Attention {
    /// The first position that the token at `position` sees.
    fn first_key(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window as usize))
    }
}

impl Attention {
    /// Kernels over caches take heads whose width is a multiple of this.
    pub const HEAD_STEP: usize = 16;
    /// The same where a cache is [`Element::Q8`], whose scales are for whole groups of a head.
    pub const Q8_HEAD_STEP: usize = Q8_GROUP;
    /// Encoders' kernels, which read keys and values in f32, take heads whose width is a multiple of this.
    pub const ENCODER_HEAD_STEP: usize = 8;
    /// The widest head that kernels have memory for.
    pub const MOST_HEAD: usize = 512;
    /// The most query heads: grids have a workgroup for each head of a few tokens, and 65,535 at most.
    pub const MOST_HEADS: usize = 256;
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let ([q, k, v] | [q, k, v, _]) = inputs else { panic!("attention takes q, k and v") };
        let ([t, heads, width], [_, kv_heads, kv_width]) = (q.shape.dims(), k.shape.dims()) else {
            panic!("attention: {q} over {k}")
        };
        assert_eq!(k, v, "attention: both caches have one type");
        assert!(width == kv_width && heads.is_multiple_of(*kv_heads), "attention: {q} over {k}");
        let fits = width.is_multiple_of(Self::HEAD_STEP) && *width <= Self::MOST_HEAD;
        assert!(fits, "attention: heads of {width}");
        let whole = k.element != Element::Q8 || width.is_multiple_of(Q8_GROUP);
        assert!(whole, "attention: heads of {width} are no whole groups of {k}");
        if let Some(blocks) = inputs.get(BLOCKS_INPUT) {
            assert_eq!(**blocks, Type::u32([*t]), "attention: where blocks end, per token");
            assert!(self.window.is_some(), "attention: blocks are seen inside a window");
        }
        vec![Type::f32([*t, heads * width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v) = (call.f32(0), call.f32(1), call.f32(2));
        let blocks = (call.inputs() > BLOCKS_INPUT).then(|| call.u32(BLOCKS_INPUT));
        let reference = Reference {
            q: &q,
            heads: call.input(0).shape.dims()[1],
            k: &k,
            v: &v,
            cache: call.input(1),
            blocks: blocks.as_deref(),
            spans: None,
            step: call.step,
        };
        reference.attend(self, &mut call.out(0));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let (q, slots) = (&inputs[0].shape, inputs[1].shape.dims()[0]);
        let keys = self.window.map_or(slots, |window| slots.min(window as usize));
        4 * q.len() as u64 * keys as u64
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let (first, slots) = (step.position as usize, inputs[1].shape.dims()[0]);
        let seen = (first + step.count as usize - self.first_key(first)).min(slots) as u64;
        let slot = inputs[1].bytes() / (slots as u64).max(1);
        inputs[0].bytes() + 2 * slot * seen
    }
}
