//! What can go wrong with a model or a session.

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

/// Why a model cannot be loaded or a session cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The file is no model we can run.
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
    /// The sampling options make no sense, or leave no token.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// An image or audio clip cannot be used.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// An adapter cannot be used.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// Adapters of another model's session.
    #[error("these adapters are attached to another model; attach them to this one")]
    OtherModelsAdapters,
    /// A tower of another model.
    #[error(
        "the encoder's output has width {tower}, but the model needs {model}: use the projector file of this model"
    )]
    OtherTower {
        /// The tower's.
        tower: usize,
        /// The model's.
        model: usize,
    },
    /// A model that cannot see, or cannot hear.
    #[error(
        "the model cannot {verb}: no encoder in its file or a projector file; give the projector file (mmproj) of this model"
    )]
    NoTower {
        /// What it cannot.
        verb: &'static str,
    },
    /// A conversation with more or fewer images or audio than were given with it.
    #[error("the conversation has {places} {what}, but {given} were given")]
    NotGiven {
        /// Images, audio or videos.
        what: &'static str,
        /// How many the messages have.
        places: usize,
        /// How many came with them.
        given: usize,
    },
    /// A vocabulary without the token that stands for images or audio.
    #[error("the model's vocabulary has no token {marker}: it does not support this input")]
    NoMarker {
        /// The token.
        marker: &'static str,
    },
    /// A prompt whose placeholders are not those of its images and audio.
    #[error(
        "the prompt has {found} placeholders in a row where an image or audio clip needs {wanted}"
    )]
    Placeholders {
        /// How many there are.
        found: usize,
        /// How many there must be.
        wanted: usize,
    },
    /// Soft tokens that do not follow each other as their image or audio clip has them.
    #[error(
        "the soft tokens at {position} are not one whole image or audio clip: rewind to before it"
    )]
    SoftTokenOrder {
        /// Where in the tokens.
        position: usize,
    },
    /// Something that cannot be done where there are images or audio.
    #[error("a prompt with images or audio cannot {what}")]
    NotWithMedia {
        /// What it cannot.
        what: &'static str,
    },
    /// An image whose parts must be computed together and are too many for that.
    #[error(
        "an image of {tokens} tokens must fit in one pass, but a pass holds {most}: use a smaller image budget"
    )]
    BlockTooLong {
        /// Its tokens.
        tokens: usize,
        /// What fits.
        most: usize,
    },
    /// An image with more patches in a row than the tower has positions for.
    #[error(
        "the image has {patches} patches on one side, more than the encoder's {most}: make it smaller"
    )]
    ImageTooLong {
        /// How many it has.
        patches: usize,
        /// How many there may be.
        most: usize,
    },
    /// The reply cannot be constrained.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// Loading was cancelled.
    #[error("loading was cancelled")]
    Cancelled,
    /// The model does not fit into the memory it may use.
    #[error(
        "the model needs {need} bytes of GPU memory ({weights} of weights, {caches} for a context of {context} tokens, {work} of work buffers), but may use {budget}; use a shorter context, a smaller cache type, a smaller model, or the CPU"
    )]
    DoesNotFit {
        /// All of it.
        need: u64,
        /// Weights.
        weights: u64,
        /// Caches of one session.
        caches: u64,
        /// Activations.
        work: u64,
        /// Context of that session.
        context: usize,
        /// What there is.
        budget: u64,
    },
    /// There is nothing to continue.
    #[error("the prompt is empty; give a prompt")]
    EmptyPrompt,
    /// A token is not in the vocabulary.
    #[error("no token {id}: the vocabulary has {count} tokens")]
    NoSuchToken {
        /// The id.
        id: u32,
        /// Tokens there are.
        count: usize,
    },
    /// The tokens do not fit into the context.
    #[error(
        "the prompt has {tokens} tokens, but the context holds {context}; raise the context (the model was trained for {trained}) or shorten the prompt"
    )]
    ContextFull {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens the session holds.
        context: usize,
        /// Tokens the model was trained for.
        trained: usize,
    },
    /// A context that cannot be.
    #[error("a context of {asked} tokens is not possible: choose 1 to {trained}")]
    BadContext {
        /// What was requested.
        asked: usize,
        /// Tokens the model was trained for.
        trained: usize,
    },
    /// More requests wait than a scheduler keeps.
    #[error("{waiting} requests are waiting already; try again later")]
    QueueFull {
        /// How many wait.
        waiting: usize,
    },
    /// A request that the KV pool of a scheduler can never hold.
    #[error(
        "the request may take {tokens} tokens, but the KV pool holds {holds}; ask for fewer tokens (num_predict) or use a larger pool"
    )]
    KvPoolTooSmall {
        /// Tokens of the prompt and the longest completion.
        tokens: usize,
        /// What the pool holds.
        holds: usize,
    },
    /// No page is left in a KV pool.
    #[error("all {pages} pages of the KV pool are taken; try again when other requests have ended")]
    KvPoolFull {
        /// Pages there are.
        pages: usize,
    },
    /// The code of one request panicked, such as its constraint; other requests go on.
    #[error("the request was ended by a defect in its own code: {message}")]
    RequestPanicked {
        /// What the panic says.
        message: String,
    },
    /// The file has no usable vocabulary, and texts were given.
    #[error("the file has no vocabulary, so it cannot tokenize text; give the model itself")]
    NoVocabulary,
    /// A vector cannot have so many numbers.
    #[error("{asked} dimensions are not possible: choose 1 to {most}")]
    Dimensions {
        /// What was requested.
        asked: usize,
        /// What the model makes.
        most: usize,
    },
    /// A saved session does not belong here.
    #[error("the saved session {why}")]
    Saved {
        /// What is wrong with it.
        why: &'static str,
    },
}

impl RuntimeError {
    /// A stable word for programs.
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
            Self::Sampling(_) => "bad_options",
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
