//! Errors of models and sessions.

use rullama_adapter::AdapterError;
use rullama_chat::ChatError;
use rullama_engine::EngineError;
use rullama_gguf::GgufError;
use rullama_media::MediaError;
use rullama_models::ModelError;

use crate::{
    generate::ConstraintError,
    sampling::SamplingError,
    vocabulary::{FamilyError, VocabularyError},
};

/// Why loading a model or running a session failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The file is no supported model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The file has no usable vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The file's prompt template is not known.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// The device failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The conversation cannot be rendered.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The sampling options are invalid, or exclude every token.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// An image or audio clip cannot be used.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// An adapter cannot be used.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// A scheduler's passes do not compute what the session's do.
    #[error(
        "the session has another model, context or cache format than the scheduler it was to join; make both with the same options"
    )]
    OtherSessions,
    /// The adapters are attached to another model.
    #[error("these adapters are attached to another model; attach them to this one")]
    OtherModelsAdapters,
    /// The encoder belongs to another model.
    #[error(
        "the encoder's output has width {tower}, but the model needs {model}: use the projector file of this model"
    )]
    OtherTower {
        /// Output width of the encoder.
        tower: usize,
        /// Width the model needs.
        model: usize,
    },
    /// The model has no encoder for this input.
    #[error(
        "the model cannot {verb}: no encoder in its file or a projector file; give the projector file (mmproj) of this model"
    )]
    NoTower {
        /// The unsupported operation.
        verb: &'static str,
    },
    /// The conversation refers to more or fewer media than were passed with it.
    #[error("the conversation has {places} {what}, but {given} were given")]
    NotGiven {
        /// Images, audio or videos.
        what: &'static str,
        /// Number in the messages.
        places: usize,
        /// Number passed.
        given: usize,
    },
    /// The vocabulary has no placeholder token for images or audio.
    #[error("the model's vocabulary has no token {marker}: it does not support this input")]
    NoMarker {
        /// The token.
        marker: &'static str,
    },
    /// The prompt's placeholders do not match its images and audio.
    #[error(
        "the prompt has {found} placeholders in a row where an image or audio clip needs {wanted}"
    )]
    Placeholders {
        /// Number found.
        found: usize,
        /// Number required.
        wanted: usize,
    },
    /// Soft tokens are not in the order of their image or audio clip.
    #[error(
        "the soft tokens at {position} are not one whole image or audio clip: rewind to before it"
    )]
    SoftTokenOrder {
        /// Token position.
        position: usize,
    },
    /// An operation that prompts with images or audio do not support.
    #[error("a prompt with images or audio cannot {what}")]
    NotWithMedia {
        /// The unsupported operation.
        what: &'static str,
    },
    /// An image with more soft tokens than one pass holds, in a model that needs them in one pass.
    #[error(
        "an image of {tokens} tokens must fit in one pass, but a pass holds {most}: use a smaller image budget"
    )]
    BlockTooLong {
        /// Soft tokens of the image.
        tokens: usize,
        /// Maximum tokens of a pass.
        most: usize,
    },
    /// An image with more patches along one side than the encoder has positions.
    #[error(
        "the image has {patches} patches on one side, more than the encoder's {most}: make it smaller"
    )]
    ImageTooLong {
        /// Patches along the side.
        patches: usize,
        /// Maximum patches.
        most: usize,
    },
    /// The reply cannot be constrained.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// Loading was cancelled.
    #[error("loading was cancelled")]
    Cancelled,
    /// The model does not fit the memory budget.
    #[error(
        "the model needs {need} bytes of memory ({weights} of weights, {caches} for a context of {context} tokens, {work} of work buffers), but may use {budget}; use a shorter context, a smaller cache type or a smaller model, or, where this is the memory of a GPU, the CPU"
    )]
    DoesNotFit {
        /// Total bytes.
        need: u64,
        /// Bytes of weights.
        weights: u64,
        /// Bytes of one session's KV caches.
        caches: u64,
        /// Bytes of work buffers.
        work: u64,
        /// Context of that session.
        context: usize,
        /// Memory budget in bytes.
        budget: u64,
    },
    /// The prompt has no tokens.
    #[error("the prompt is empty; give a prompt")]
    EmptyPrompt,
    /// A token is not in the vocabulary.
    #[error("no token {id}: the vocabulary has {count} tokens")]
    NoSuchToken {
        /// The id.
        id: u32,
        /// Vocabulary size.
        count: usize,
    },
    /// The tokens do not fit into the context.
    #[error(
        "the prompt has {tokens} tokens, but the context holds {context}; raise the context (the model was trained for {trained}) or shorten the prompt"
    )]
    ContextFull {
        /// Tokens of the prompt.
        tokens: usize,
        /// Context of the session.
        context: usize,
        /// Tokens the model was trained for.
        trained: usize,
    },
    /// The requested context is impossible.
    #[error("a context of {requested} tokens is not possible: choose 1 to {trained}")]
    BadContext {
        /// Requested context.
        requested: usize,
        /// Tokens the model was trained for.
        trained: usize,
    },
    /// A limit of thinking in a model without a token that ends thoughts.
    #[error(
        "this model's thoughts cannot be limited: no token of its vocabulary ends them; request no effort and no budget"
    )]
    EndlessThoughts,
    /// The scheduler's queue is full.
    #[error("{waiting} requests are waiting already; try again later")]
    QueueFull {
        /// Queued requests.
        waiting: usize,
    },
    /// A request that can never fit the scheduler's KV pool.
    #[error(
        "the request needs up to {tokens} tokens, but the KV pool holds {holds}; request fewer tokens (num_predict) or use a larger pool"
    )]
    KvPoolTooSmall {
        /// Tokens of the prompt and the longest completion.
        tokens: usize,
        /// Capacity of the pool in tokens.
        holds: usize,
    },
    /// No page is left in a KV pool.
    #[error(
        "all {pages} pages of the KV pool are in use; try again when other requests have ended"
    )]
    KvPoolFull {
        /// Pages of the pool.
        pages: usize,
    },
    /// Code of one request panicked, such as its constraint; other requests continue.
    #[error("the request ended because its code panicked: {message}")]
    RequestPanicked {
        /// The panic's message.
        message: String,
    },
    /// Text was passed, but the file has no usable vocabulary.
    #[error("the file has no vocabulary, so it cannot tokenize text; give the model itself")]
    NoVocabulary,
    /// The requested number of dimensions is impossible.
    #[error("{requested} dimensions are not possible: choose 1 to {most}")]
    Dimensions {
        /// Requested dimensions.
        requested: usize,
        /// Dimensions of the model.
        most: usize,
    },
    /// A saved session cannot be restored.
    #[error("the saved session {why}")]
    Saved {
        /// The reason, as a verb phrase.
        why: &'static str,
    },
}

impl RuntimeError {
    /// Stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(_) => "bad_file",
            Self::Model(ModelError::MissingTensors { .. }) => "missing_tensor",
            Self::Model(ModelError::UnsupportedFormat { .. }) => "unsupported_format",
            Self::Model(ModelError::CacheFormat { .. }) => "bad_options",
            Self::Model(_) => "unsupported_model",
            Self::Vocabulary(_) | Self::Family(_) | Self::NoVocabulary => "bad_vocabulary",
            Self::Dimensions { .. } => "bad_options",
            Self::Engine(error) => engine_code(error),
            Self::Chat(_) => "bad_conversation",
            Self::Sampling(_) | Self::EndlessThoughts | Self::OtherSessions => "bad_options",
            Self::Media(_) | Self::ImageTooLong { .. } | Self::BlockTooLong { .. } => "bad_media",
            Self::Placeholders { .. }
            | Self::SoftTokenOrder { .. }
            | Self::NotWithMedia { .. }
            | Self::NotGiven { .. } => "bad_prompt",
            Self::Adapter(_) | Self::OtherModelsAdapters => "bad_adapter",
            Self::OtherTower { .. } | Self::NoMarker { .. } => "unsupported_model",
            Self::NoTower { .. } => "no_tower",
            Self::Constraint(_) => "bad_format",
            Self::Cancelled => "cancelled",
            Self::DoesNotFit { .. } => "out_of_memory",
            Self::EmptyPrompt | Self::NoSuchToken { .. } => "bad_prompt",
            Self::ContextFull { .. } | Self::BadContext { .. } => "context_full",
            Self::QueueFull { .. } | Self::KvPoolFull { .. } => "busy",
            Self::KvPoolTooSmall { .. } => "context_full",
            Self::RequestPanicked { .. } => "panicked",
            Self::Saved { .. } => "bad_session",
        }
    }
}

fn engine_code(error: &EngineError) -> &'static str {
    match error {
        EngineError::NoAdapter { .. } | EngineError::NoDevice { .. } => "no_gpu",
        EngineError::DeviceLost | EngineError::Refused { .. } => "device_lost",
        EngineError::OutOfMemory { .. } => "out_of_memory",
        EngineError::Timeout => "timeout",
        EngineError::UnsupportedFormat { .. } => "unsupported_format",
        _ => "engine",
    }
}
