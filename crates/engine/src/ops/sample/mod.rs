//! Samples a token from the sorted list of the largest logits: top-k, top-p, min-p, then temperature, then the draw.
//!
//! `u` is a hash of the pass's seed and the position of its last token, so a pass is reproducible and no state is kept. Several lists belong
//! to the tokens of a pass, each drawn as if its token were the last. Sums are accumulated in the order of the list, on the CPU and on the
//! GPU.

pub(crate) mod cases;
mod cpu;
#[cfg(test)]
mod tests;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Step, Type, Value},
    ops::{
        TopK,
        sequences::{Paging, Sequences},
    },
};

static DRAW: Kernel = Kernel { name: "sample/draw", source: include_str!("draw.wgsl") };

/// Samples from sorted lists. Inputs: ids, logits, a [`Draw`] as `[4]`, and optionally the state for the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Whether the token is written to a state instead of an output.
    pub into: bool,
    /// If lists belong to different sequences: each has its own [`Draw`], and the last input holds their positions and seeds.
    pub paging: Option<Paging>,
}

/// Sampling parameters, as written to the input of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Divides the logits; 0 or less: greedy.
    pub temperature: f32,
    /// Keeps the shortest prefix of the list with at least this probability; 1 or more keeps all.
    pub top_p: f32,
    /// Drops candidates with less than this times the probability of the first; 0 or less keeps all.
    pub min_p: f32,
    /// Keeps this number of candidates; 0 or less keeps all.
    pub top_k: f32,
}

impl From<Draw> for [f32; 4] {
    fn from(draw: Draw) -> Self {
        [draw.temperature, draw.top_p, draw.min_p, draw.top_k]
    }
}

impl Graph {
    /// A token `[1]` from ids `[k]` and logits `[k]`, largest first; `draw` `[4]` holds a [`Draw`]. From lists `[t, k]`, tokens `[t]`.
    pub fn sample(&mut self, ids: Value, logits: Value, draw: Value) -> Value {
        self.apply(Sample { into: false, paging: None }, &[ids, logits, draw])
    }

    /// Tokens `[t]` of different sequences, each drawn with the seed and position of its sequence; `draws` `[t, 4]` holds a [`Draw`] for
    /// each.
    pub fn sample_rows(
        &mut self,
        ids: Value,
        logits: Value,
        draws: Value,
        sequences: Sequences,
    ) -> Value {
        let op = Sample { into: false, paging: Some(sequences.paging) };
        self.apply(op, &[ids, logits, draws, sequences.value])
    }

    /// Writes the tokens to the state `[t]`, from which the next pass reads them.
    pub fn sample_into(&mut self, state: Value, ids: Value, logits: Value, draw: Value) {
        self.apply_all(Sample { into: true, paging: None }, &[ids, logits, draw, state]);
    }
}

impl Op for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [ids, logits, draw, state @ ..] = inputs else { panic!("sample takes three inputs") };
        let fits = ids.element == Element::U32
            && ids.shape == logits.shape
            && (1..=TopK::MOST).contains(&ids.shape.width());
        assert!(fits, "sample: {ids} with logits {logits}");
        let draws = if self.paging.is_some() { ids.shape.rows() } else { 1 };
        assert_eq!(draw.shape.len(), draws * 4, "sample: parameters {draw}");
        if let Some(paging) = self.paging {
            let [sequences] = state else { panic!("sample: sequences after the draws") };
            paging.check_rows(sequences, ids.shape.rows());
        }
        if !self.into {
            return vec![Type::u32([ids.shape.rows()])];
        }
        assert_eq!(state, [&Type::u32([ids.shape.rows()])], "sample: a state for the tokens");
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        if self.into { &[3] } else { &[] }
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let draws = call.f32(2);
        let sequences = call.sequences(self.paging);
        let rows_of = sequences.as_ref().map(|(_, words, ty)| (&words[..], ty.shape.width()));
        let (ids, logits) = (call.u32(0), call.f32(1));
        let (k, rows) = (call.input(0).shape.width(), call.input(0).shape.rows());
        let token = |row: usize| {
            let draw = &draws[if rows_of.is_some() { row * 4 } else { 0 }..];
            let draw =
                Draw { temperature: draw[0], top_p: draw[1], min_p: draw[2], top_k: draw[3] };
            let uniform = match rows_of {
                None => cpu::uniform(call.step, row, rows),
                Some((words, each)) => {
                    let (position, seed) = (words[row * each], words[row * each + 1]);
                    cpu::uniform(&Step { position, count: 1, seed, ..Step::default() }, 0, 1)
                }
            };
            ids[row * k + cpu::choose(&logits[row * k..][..k], &draw, uniform)]
        };
        let tokens: Vec<u32> = (0..rows).map(token).collect();
        if self.into {
            call.state_u32(3).copy_from_slice(&tokens);
        } else {
            call.out_u32(0).copy_from_slice(&tokens);
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let (k, rows) = (call.input(0).shape.width(), call.input(0).shape.rows());
        let params = Params { k: k as u32, rows: rows as u32 };
        let draw = Dispatch::new(&DRAW)
            .params(&params)
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(1))
            .read(BufferRef::Input(2))
            .write(if self.into { BufferRef::Input(3) } else { BufferRef::Output(0) })
            .grid(rows, 1, 1);
        vec![match self.paging {
            Some(paging) => draw.sequences(paging, 3, call.input(3)),
            None => draw,
        }]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    k: u32,
    rows: u32,
}
