//! What can go wrong while an adapter learns.

use rullama_adapter::AdapterError;
use rullama_engine::EngineError;
use rullama_runtime::RuntimeError;

/// Why training cannot begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A line of the data cannot be used.
    #[error("line {line} of the data: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        why: LineError,
    },
    /// There is nothing to learn from.
    #[error(
        "the data has no tokens to learn: give lines with a completion, an assistant turn or a text"
    )]
    NoTargets,
    /// The split leaves nothing on one side.
    #[error(
        "an evaluation split of {split} of {examples} examples leaves one side empty; give more data or another split"
    )]
    Split {
        /// What was requested.
        split: f64,
        /// Examples there are.
        examples: usize,
    },
    /// A weight that cannot be adapted.
    #[error("this model has no weight {target:?} to adapt; choose from {known}")]
    NoSuchTarget {
        /// What was requested.
        target: String,
        /// What there is.
        known: String,
    },
    /// An adapter that changes what is not trained: experts, the router, the table of tokens.
    #[error(
        "{count} tensors of the adapter can be used but not trained, such as {first:?}; start from an adapter for attention and feed-forward only, or from none"
    )]
    NotTrained {
        /// How many.
        count: usize,
        /// One of them.
        first: String,
    },
    /// An option that makes no sense.
    #[error("{option} cannot be {value}: {wanted}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What was given.
        value: String,
        /// What is possible.
        wanted: &'static str,
    },
    /// The memory does not suffice, even when every layer is computed twice.
    #[error(
        "training needs {need} bytes of GPU memory ({model} of them the model), but may use {budget}; allow more memory, or use shorter sequences, a lower rank or fewer targets"
    )]
    DoesNotFit {
        /// All of it.
        need: u64,
        /// Of it, the model's weights.
        model: u64,
        /// What there is.
        budget: u64,
    },
    /// Experts that the host computes have no gradient.
    #[error(
        "{layers} layers have their experts on the host, where they cannot be trained: allow more GPU memory, or train on the CPU"
    )]
    HostExperts {
        /// How many layers.
        layers: usize,
    },
    /// The loss is no number any more.
    #[error("the loss of step {step} is {loss}: lower the learning rate, or clip gradients")]
    Diverged {
        /// The step, from 1.
        step: u32,
        /// The loss.
        loss: f64,
    },
    /// A checkpoint that does not belong to this run, or is damaged.
    #[error("the checkpoint {why}")]
    Checkpoint {
        /// What is wrong with it.
        why: String,
    },
    /// The adapter to begin with cannot be used.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// The model failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The device failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What is wrong with a line of the data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is no JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON, but none of the kinds there are.
    #[error(
        "it has none of \"messages\", \"prompt\" with \"completion\", \"text\", or \"ids\" with \"n_prompt\""
    )]
    Unknown,
    /// A field is missing or has another type.
    #[error("{field:?} must be {wanted}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// A conversation without an answer.
    #[error("the conversation has no assistant turn to learn")]
    NoAssistant,
    /// Nothing is left to learn.
    #[error("no token to learn: {tokens} tokens, {prompt} of them prompt")]
    Empty {
        /// Tokens of the line.
        tokens: usize,
        /// Tokens before the first that is learned.
        prompt: usize,
    },
    /// A token is not in the vocabulary.
    #[error("no token {id}: the vocabulary has {count} tokens")]
    NoSuchToken {
        /// The id.
        id: u64,
        /// Tokens there are.
        count: usize,
    },
    /// The conversation cannot be rendered, or the model has no vocabulary.
    #[error(transparent)]
    Runtime(Box<RuntimeError>),
}

impl From<RuntimeError> for LineError {
    fn from(error: RuntimeError) -> Self {
        Self::Runtime(Box::new(error))
    }
}
