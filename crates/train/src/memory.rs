//! How much memory training takes, and how many layers are computed again so that it fits.

use rullama_engine::{
    executor::Device,
    gpu::{self, STAGING_BYTES, work_bytes},
    graph::Graph,
};
use rullama_models::gemma4::{TrainPass, train_graph};
use rullama_runtime::Model;

use crate::{
    adapters::{Slot, adapted},
    error::TrainError,
    trainer::Settings,
    update::update_graph,
};

/// Most bytes of logits at a time.
const LOGIT_BYTES: usize = 128 << 20;
/// Sizes of buffers on a device are multiples of this.
const BUFFER_ALIGNMENT: u64 = 16;

/// Sizes of the sequences that are trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Tokens of the longest.
    pub tokens: usize,
    /// Most targets of one.
    pub targets: usize,
}

/// Bytes on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The model's weights.
    pub model: u64,
    /// Adapters, gradients and moments.
    pub adapter: u64,
    /// Activations of a step and of an evaluation, and whatever else their graphs need.
    pub work: u64,
    /// How many of the first layers are computed again on the way back.
    pub again: usize,
}

impl Need {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.model + self.adapter + self.work
    }
}

/// What training these pairs takes, with as few layers computed again as fit the budget.
///
/// # Errors
/// If nothing fits.
pub(crate) fn need(
    model: &Model,
    slots: &[Slot],
    shape: Shape,
    settings: &Settings,
) -> Result<Need, TrainError> {
    let learning = TrainPass { dropout: settings.dropout, ..pass(model, slots, shape) };
    let graph = |pass: &TrainPass| train_graph(model.config(), model.catalog(), pass);
    let all = model.config().layers.len();
    let longest = graph(&TrainPass { again: all, ..learning.clone() });
    let least = work_bytes(&longest.graph);
    // What does not depend on how many layers are computed again; scratch and parameters hardly do.
    let device = model.device();
    let update = update_graph(&longest.parameters, settings.clip.is_some());
    let beside = plan_bytes(&longest.graph, device) - least
        + plan_bytes(&graph(&measuring(&learning)).graph, device)
        + plan_bytes(&update, device)
        + STAGING_BYTES;
    let adapter = longest
        .parameters
        .iter()
        .map(|it| 4 * it.ty.bytes().next_multiple_of(BUFFER_ALIGNMENT))
        .sum();
    let with = |again: usize| {
        let work = match again == all {
            true => least,
            false => work_bytes(&graph(&TrainPass { again, ..learning.clone() }).graph),
        };
        Need { model: model.gpu_bytes(), adapter, work: work + beside, again }
    };
    let Some(budget) = settings.memory else { return Ok(with(0)) };
    let most = with(all);
    if most.total() > budget {
        let (need, model) = (most.total(), most.model);
        return Err(TrainError::DoesNotFit { need, model, budget });
    }
    // The fewest: more layers need less memory.
    let (mut low, mut best) = (0, most);
    while low < best.again {
        let middle = with((low + best.again) / 2);
        if middle.total() <= budget {
            best = middle;
        } else {
            low = middle.again + 1;
        }
    }
    Ok(best)
}

/// Bytes of a graph on a device; on the CPU, those of its values.
fn plan_bytes(graph: &Graph, device: &Device) -> u64 {
    match device {
        Device::Cpu => work_bytes(graph),
        Device::Gpu(gpu) => gpu::plan_bytes(graph, gpu.facts()),
    }
}

/// The same graph where nothing is learned, only measured.
pub(crate) fn measuring(pass: &TrainPass) -> TrainPass {
    TrainPass { learns: false, dropout: 0.0, again: 0, ..pass.clone() }
}

/// The graph that learns, with every layer kept and nothing left out.
pub(crate) fn pass(model: &Model, slots: &[Slot], shape: Shape) -> TrainPass {
    let rows = (LOGIT_BYTES / 4 / model.config().vocabulary.max(1)).max(1);
    // Parts of one size, so that the last one is not nearly empty.
    let parts = shape.targets.div_ceil(rows).max(1);
    TrainPass {
        tokens: shape.tokens,
        supervised: shape.targets,
        logit_rows: shape.targets.div_ceil(parts).max(1),
        table: model.table_resident(),
        adapters: adapted(slots),
        dropout: 0.0,
        again: 0,
        learns: true,
    }
}
