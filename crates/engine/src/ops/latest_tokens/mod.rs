//! The latest token of each sequence, kept on the device: the next batched pass reads it before the host does.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
    ops::sequences::{Paging, Sequences},
};

static GATHER: Kernel =
    Kernel { name: "latest_tokens/gather", source: include_str!("gather.wgsl") };
static SCATTER: Kernel =
    Kernel { name: "latest_tokens/scatter", source: include_str!("scatter.wgsl") };

/// Rows per workgroup.
const ROWS: usize = 64;

/// Replaces ids that name a slot by the latest token in that slot; other ids are copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherTokens;

impl GatherTokens {
    /// The bit that marks an id as a slot index.
    pub const ON_DEVICE: u32 = 1 << 31;
}

/// Writes the tokens of the live rows to their sequences' slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScatterTokens {
    /// How rows belong to sequences.
    pub paging: Paging,
}

impl Graph {
    /// Ids `[t]`: `given`, with ids marked by [`GatherTokens::ON_DEVICE`] replaced by the token in that slot of the state `latest`.
    pub fn gather_tokens(&mut self, given: Value, latest: Value) -> Value {
        self.apply(GatherTokens, &[given, latest])
    }

    /// Writes the tokens `[t]` of the live rows to their sequences' slots of the state `latest`.
    pub fn scatter_tokens(&mut self, latest: Value, tokens: Value, sequences: Sequences) {
        let op = ScatterTokens { paging: sequences.paging };
        self.apply_all(op, &[latest, tokens, sequences.value]);
    }
}

impl Op for GatherTokens {
    fn name(&self) -> &'static str {
        "latest_tokens"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_ids("gather_tokens", inputs);
        vec![inputs[0].clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (given, latest) = (call.u32(0), call.u32(1));
        for (id, given) in call.out_u32(0).iter_mut().zip(given.iter()) {
            let slot = (given & !Self::ON_DEVICE) as usize;
            *id = match given & Self::ON_DEVICE {
                0 => *given,
                _ => latest[slot.min(latest.len() - 1)],
            };
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let params = Params::new(call.input(0), call.input(1));
        vec![
            Dispatch::new(&GATHER)
                .params(&params)
                .read(BufferRef::Input(0))
                .read(BufferRef::Input(1))
                .write(BufferRef::Output(0))
                .grid(call.input(0).shape.len().div_ceil(ROWS), 1, 1),
        ]
    }
}

impl Op for ScatterTokens {
    fn name(&self) -> &'static str {
        "latest_tokens"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_ids("scatter_tokens", &inputs[..2]);
        self.paging.check_rows(inputs[2], inputs[1].shape.len());
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        &[0]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (tokens, words) = (call.u32(1), call.u32(2));
        let sequences = words.chunks_exact(call.input(2).shape.width());
        let mut latest = call.state_u32(0);
        let last = latest.len() - 1;
        let live = tokens.iter().zip(sequences).take(call.step.count as usize);
        live.for_each(|(token, words)| {
            latest[(words[Sequences::SLOT] as usize).min(last)] = *token
        });
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let params = Params::new(call.input(1), call.input(0));
        vec![
            Dispatch::new(&SCATTER)
                .params(&params)
                .read(BufferRef::Input(1))
                .write(BufferRef::Input(0))
                .sequences(self.paging, 2, call.input(2))
                .grid(call.input(1).shape.len().div_ceil(ROWS), 1, 1),
        ]
    }
}

fn assert_ids(name: &str, inputs: &[&Type]) {
    let ids = inputs.iter().all(|ty| ty.element == Element::U32 && !ty.shape.is_empty());
    assert!(ids, "{name} takes ids, not {inputs:?}");
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    rows: u32,
    slots: u32,
}

impl Params {
    fn new(rows: &Type, slots: &Type) -> Self {
        Self { rows: rows.shape.len() as u32, slots: slots.shape.len() as u32 }
    }
}
