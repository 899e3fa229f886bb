//! The crate's error types.

use rullama_adapter::AdapterError;
use rullama_engine::EngineError;
use rullama_runtime::RuntimeError;

/// Why training cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A line of the data is invalid.
    #[error("line {line} of the data: {why}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The line's error.
        why: LineError,
    },
    /// The data has no targets.
    #[error(
        "the data has no tokens to learn: give lines with a completion, an assistant turn or a text"
    )]
    NoTargets,
    /// The evaluation split leaves one side empty.
    #[error(
        "an evaluation split of {split} of {examples} examples leaves one side empty; give more data or another split"
    )]
    Split {
        /// The requested share.
        split: f64,
        /// Number of examples.
        examples: usize,
    },
    /// A weight that cannot be adapted.
    #[error("this model has no weight {target:?} to adapt; choose from {known}")]
    NoSuchTarget {
        /// The requested name.
        target: String,
        /// The valid names.
        known: String,
    },
    /// An adapter with pairs for weights that cannot be trained: experts, the router, the token embedding.
    #[error(
        "{count} tensors of the adapter can be used but not trained, such as {first:?}; start from an adapter for attention and feed-forward only, or from none"
    )]
    NotTrained {
        /// Number of such pairs.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// An option out of range.
    #[error("{option} cannot be {value}: {wanted}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The given value.
        value: String,
        /// The valid values.
        wanted: &'static str,
    },
    /// Training exceeds the memory budget, even with every layer recomputed.
    #[error(
        "training needs {need} bytes of GPU memory ({model} of them the model), but may use {budget}; allow more memory, or use shorter sequences, a lower rank or fewer targets"
    )]
    DoesNotFit {
        /// Bytes needed in total.
        need: u64,
        /// Bytes of the model's weights.
        model: u64,
        /// The budget in bytes.
        budget: u64,
    },
    /// Experts computed on the host have no gradient.
    #[error(
        "{layers} layers have their experts on the host, where they cannot be trained: allow more GPU memory, or train on the CPU"
    )]
    HostExperts {
        /// Number of layers.
        layers: usize,
    },
    /// The loss is not finite.
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
        /// The reason.
        why: String,
    },
    /// The initial adapter cannot be used.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// The model failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The device failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why a line of the data is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is not JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The line is JSON without the fields of any known kind.
    #[error(
        "it has none of \"messages\", \"prompt\" with \"completion\", \"text\", or \"ids\" with \"n_prompt\""
    )]
    Unknown,
    /// A field is missing or has the wrong type.
    #[error("{field:?} must be {wanted}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// The required type.
        wanted: &'static str,
    },
    /// A conversation without an assistant turn.
    #[error("the conversation has no assistant turn to learn")]
    NoAssistant,
    /// A line without targets.
    #[error("no token to learn: {tokens} tokens, {prompt} of them prompt")]
    Empty {
        /// Tokens of the line.
        tokens: usize,
        /// Tokens before the first target.
        prompt: usize,
    },
    /// A token is not in the vocabulary.
    #[error("no token {id}: the vocabulary has {count} tokens")]
    NoSuchToken {
        /// The id.
        id: u64,
        /// Tokens in the vocabulary.
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
