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

/// Bytes of logits at a time that every device can bind.
const LOGIT_BYTES: u64 = 128 << 20;
/// The part of a larger budget that logits may take.
const LOGIT_SHARE: u64 = 32;
/// Rows of a GEMM tile: parts of logits are multiples of it where they can be.
const TILE: usize = 128;
/// What a pass costs whatever its length, in tokens.
const PASS_COST: f64 = 256.0;
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
    /// Sequences that are computed in one pass.
    pub micro_batch: usize,
    /// Number of layers, from the first, whose activations are recomputed in the backward pass.
    pub recomputed: usize,
}

impl Need {
    /// The sum of all parts.
    pub fn total(&self) -> u64 {
        self.model + self.adapter + self.work
    }
}

impl Shape {
    /// The shape of a pass over this many sequences.
    pub(crate) fn times(self, sequences: usize) -> Self {
        Self { tokens: self.tokens * sequences, targets: self.targets * sequences }
    }
}

/// Memory for training these pairs, in the fastest way that the budget allows.
///
/// # Errors
/// If even one sequence at a time with all layers recomputed exceeds the budget.
pub(crate) fn need(
    model: &Model,
    slots: &[Slot],
    shape: Shape,
    settings: &Settings,
) -> Result<Need, TrainError> {
    let (sequences, layers) = (settings.micro_batch.max(1), model.config().layers.len());
    let mut best = of_pass(model, slots, shape, 1, settings)?;
    let cost = |need: &Need| step_cost(shape.tokens, sequences, need, layers);
    let halved = |micro_batch: &usize| Some(micro_batch.div_ceil(2));
    let counts = std::iter::successors(Some(sequences), halved).take_while(|count| *count > 1);
    for micro_batch in counts {
        // What does not fit is no error: one sequence does.
        if let Ok(found) = of_pass(model, slots, shape, micro_batch, settings)
            && cost(&found) < cost(&best)
        {
            best = found;
        }
    }
    Ok(best)
}

/// The time of a step, in tokens: what passes compute, and what each costs besides.
fn step_cost(tokens: usize, sequences: usize, need: &Need, layers: usize) -> f64 {
    let passes = sequences.div_ceil(need.micro_batch) as f64;
    // A recomputed layer is computed three times instead of twice.
    let recomputed = need.recomputed as f64 / (2 * layers.max(1)) as f64;
    let computed = (tokens * need.micro_batch) as f64 * (1.0 + recomputed);
    passes * (computed + PASS_COST)
}

/// Memory for passes over `micro_batch` sequences, with as few recomputed layers as the budget allows.
fn of_pass(
    model: &Model,
    slots: &[Slot],
    shape: Shape,
    micro_batch: usize,
    settings: &Settings,
) -> Result<Need, TrainError> {
    let shape = shape.times(micro_batch);
    let learning =
        TrainPass { dropout: settings.dropout, ..pass(model, slots, shape, settings.memory) };
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
        Need { model: model.gpu_bytes(), adapter, work: work + fixed, micro_batch, recomputed }
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
pub(crate) fn pass(model: &Model, slots: &[Slot], shape: Shape, memory: Option<u64>) -> TrainPass {
    TrainPass {
        tokens: shape.tokens,
        supervised: shape.targets,
        logit_rows: logit_rows(model, shape.targets, memory),
        table: model.table_resident(),
        adapters: adapted(slots),
        dropout: 0.0,
        recomputed: 0,
        learns: true,
    }
}

/// Rows whose logits are computed at a time. The LM head is read once for each part, so that a large budget has few of them.
fn logit_rows(model: &Model, targets: usize, memory: Option<u64>) -> usize {
    let binding = match model.device() {
        Device::Cpu => LOGIT_BYTES,
        Device::Gpu(gpu) => gpu.facts().binding_bytes,
    };
    let bytes = memory.map_or(LOGIT_BYTES, |memory| memory / LOGIT_SHARE);
    let bytes = bytes.clamp(LOGIT_BYTES, binding.max(LOGIT_BYTES));
    let row = size_of::<f32>() * model.config().vocabulary.max(1);
    let most = (bytes as usize / row).max(1);
    let most = if most > TILE { most / TILE * TILE } else { most };
    // Parts of about equal size, so that the last one is not nearly empty.
    let each = targets.div_ceil(targets.div_ceil(most).max(1)).max(1);
    if each > TILE { each.next_multiple_of(TILE).min(most) } else { each }
}
