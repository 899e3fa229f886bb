//! How much memory training takes, and how many layers are computed again so that it fits.

use rullama_adapter::Pair;
use rullama_engine::gpu::work_bytes;
use rullama_models::gemma4::{TrainPass, train_list};
use rullama_runtime::Model;

use crate::{adapters::adapted, error::TrainError};

/// Most bytes of logits at a time.
const LOGIT_BYTES: usize = 128 << 20;

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
    /// Activations of a step.
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
pub fn need(
    model: &Model,
    pairs: &[Pair],
    shape: Shape,
    budget: Option<u64>,
) -> Result<Need, TrainError> {
    let adapter = pairs.iter().map(|pair| pair.parameters() as u64 * 4 * 4).sum();
    let work = |again: usize| {
        let pass = TrainPass { again, ..pass(model, pairs, shape) };
        work_bytes(&train_list(model.config(), model.catalog(), &pass).graph)
    };
    let with = |again: usize| Need { model: model.gpu_bytes(), adapter, work: work(again), again };
    let Some(budget) = budget else { return Ok(with(0)) };
    let all = model.config().layers.len();
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

/// The list that learns, with every layer kept and nothing left out.
pub(crate) fn pass(model: &Model, pairs: &[Pair], shape: Shape) -> TrainPass {
    let rows = (LOGIT_BYTES / 4 / model.config().vocabulary.max(1)).max(1);
    // Parts of one size, so that the last one is not nearly empty.
    let parts = shape.targets.div_ceil(rows).max(1);
    TrainPass {
        tokens: shape.tokens,
        supervised: shape.targets,
        logit_rows: shape.targets.div_ceil(parts).max(1),
        table: model.table_resident(),
        adapters: adapted(pairs),
        dropout: 0.0,
        again: 0,
        learns: true,
    }
}
