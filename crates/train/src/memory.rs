//! Memory estimates for training, and how many layers must be recomputed to fit a budget.

use rullama_engine::{
    executor::Device,
    gpu::{self, STAGING_BYTES, work_bytes},
    graph::Graph,
};
use rullama_models::decoder::{TrainPass, train_graph};
use rullama_runtime::Model;

use crate::{
    adapters::{Slot, adapted},
    error::TrainError,
    trainer::Settings,
    update::update_graph,
};

/// Maximum bytes of logits at a time.
const LOGIT_BYTES: usize = 128 << 20;
/// Alignment of buffer sizes on a GPU.
const BUFFER_ALIGNMENT: u64 = 16;

/// Sizes of the training sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Tokens of the longest sequence.
    pub tokens: usize,
    /// Most targets of a sequence.
    pub targets: usize,
}

/// GPU memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The model's weights.
    pub model: u64,
    /// Adapter, gradients and moments.
    pub adapter: u64,
    /// Activations, scratch and parameters of the training and evaluation graphs.
    pub work: u64,
    /// Number of layers, from the first, whose activations are recomputed in the backward pass.
    pub recomputed: usize,
}

impl Need {
    /// The sum of all parts.
    pub fn total(&self) -> u64 {
        self.model + self.adapter + self.work
    }
}

/// Memory for training these pairs, with as few recomputed layers as the budget allows.
///
/// # Errors
/// If even recomputing all layers exceeds the budget.
pub(crate) fn need(
    model: &Model,
    slots: &[Slot],
    shape: Shape,
    settings: &Settings,
) -> Result<Need, TrainError> {
    let learning = TrainPass { dropout: settings.dropout, ..pass(model, slots, shape) };
    let graph = |pass: &TrainPass| train_graph(model.config(), model.catalog(), pass);
    let all = model.config().layers.len();
    let longest = graph(&TrainPass { recomputed: all, ..learning.clone() });
    let least = work_bytes(&longest.graph);
    // Independent of the number of recomputed layers; scratch and parameters hardly depend on it.
    let device = model.device();
    let update = update_graph(&longest.parameters, settings.clip.is_some());
    let fixed = plan_bytes(&longest.graph, device) - least
        + plan_bytes(&graph(&evaluation(&learning)).graph, device)
        + plan_bytes(&update, device)
        + STAGING_BYTES;
    let adapter = longest
        .parameters
        .iter()
        .map(|parameter| 4 * parameter.ty.bytes().next_multiple_of(BUFFER_ALIGNMENT))
        .sum();
    let with = |recomputed: usize| {
        let work = match recomputed == all {
            true => least,
            false => work_bytes(&graph(&TrainPass { recomputed, ..learning.clone() }).graph),
        };
        Need { model: model.gpu_bytes(), adapter, work: work + fixed, recomputed }
    };
    let Some(budget) = settings.memory else { return Ok(with(0)) };
    let most = with(all);
    if most.total() > budget {
        let (need, model) = (most.total(), most.model);
        return Err(TrainError::DoesNotFit { need, model, budget });
    }
    // Binary search for the fewest recomputed layers: recomputing more needs less memory.
    let (mut low, mut best) = (0, most);
    while low < best.recomputed {
        let middle = with((low + best.recomputed) / 2);
        if middle.total() <= budget {
            best = middle;
        } else {
            low = middle.recomputed + 1;
        }
    }
    Ok(best)
}

/// Bytes of a graph's plan on a GPU; on the CPU, of its values.
fn plan_bytes(graph: &Graph, device: &Device) -> u64 {
    match device {
        Device::Cpu => work_bytes(graph),
        Device::Gpu(gpu) => gpu::plan_bytes(graph, gpu.facts()),
    }
}

/// The evaluation pass of a training pass: no gradients, no dropout.
pub(crate) fn evaluation(pass: &TrainPass) -> TrainPass {
    TrainPass { learns: false, dropout: 0.0, recomputed: 0, ..pass.clone() }
}

/// The training pass with no layer recomputed and no dropout.
pub(crate) fn pass(model: &Model, slots: &[Slot], shape: Shape) -> TrainPass {
    let rows = (LOGIT_BYTES / 4 / model.config().vocabulary.max(1)).max(1);
    // Parts of equal size, so that the last one is not nearly empty.
    let parts = shape.targets.div_ceil(rows).max(1);
    TrainPass {
        tokens: shape.tokens,
        supervised: shape.targets,
        logit_rows: shape.targets.div_ceil(parts).max(1),
        table: model.table_resident(),
        adapters: adapted(slots),
        dropout: 0.0,
        recomputed: 0,
        learns: true,
    }
}
