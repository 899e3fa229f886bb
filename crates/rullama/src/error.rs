//! What can go wrong.

use std::{io, path::PathBuf};

use rullama_adapter::AdapterError;
use rullama_gguf::GgufError;
use rullama_runtime::RuntimeError;
use rullama_source::SourceError;
use rullama_store::StoreError;
use rullama_train::TrainError;

/// Why a model cannot be opened or used. The message says what to do; [`Error::code`] is for programs. Large causes are boxed, so that
/// results stay small.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is not in Ollama's store, or the store is damaged.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file or URL cannot be read.
    #[error("{0}")]
    Source(#[from] SourceError),
    /// A file is not a GGUF file that can be used.
    #[error("{name}: {source}")]
    Gguf {
        /// The file.
        name: String,
        /// What is wrong with it.
        source: Box<GgufError>,
    },
    /// A part of a split model cannot be read.
    #[error("the model has {count} parts, which must be in the same folder: {source}")]
    Part {
        /// How many there are.
        count: u16,
        /// What is wrong with one.
        source: Box<Self>,
    },
    /// The demo model, in a build without the feature `demo`.
    #[error("this build has no demo model: enable the feature `demo`, or open another model")]
    NoDemo,
    /// The model cannot be loaded, or cannot go on.
    #[error("{0}")]
    Runtime(#[source] Box<RuntimeError>),
    /// Training failed.
    #[error("{0}")]
    Train(#[source] Box<TrainError>),
    /// An adapter cannot be read or written.
    #[error("{0}")]
    Adapter(#[from] AdapterError),
    /// The adapter that a model of the store comes with cannot be read.
    #[error("the adapter this model comes with: {0}")]
    StoredAdapter(#[source] Box<Self>),
    /// A drafter that was named cannot be used.
    #[error("{name}: {source}")]
    Drafter {
        /// The drafter.
        name: String,
        /// What is wrong with it.
        source: Box<Self>,
    },
    /// The messages that a model of the store comes with are none.
    #[error("the messages this model comes with: {0}")]
    StoredMessages(#[source] serde_json::Error),
    /// The parameters that a model of the store comes with are none.
    #[error("the model's parameters: {0}")]
    StoredParameters(#[source] Box<RuntimeError>),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// An image, audio clip or video cannot be used.
    #[error("{name}: {source}")]
    Media {
        /// Its file, or what it is.
        name: String,
        /// What is wrong with it.
        source: Box<RuntimeError>,
    },
    /// A folder where an image or audio file is needed.
    #[error("{}: this is a folder; only a video may be a folder", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A folder of video frames without images.
    #[error("{}: no images in this folder (PNG, JPEG, WebP or GIF)", path.display())]
    NoFrames {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is larger than any image or audio clip that can be used.
    #[error("{}: the file is larger than 1 GiB: make it smaller first", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A saved conversation cannot be used.
    #[error("{0}")]
    Saved(#[from] SavedProblem),
    /// A saved conversation in a file cannot be used.
    #[error("{}: {source}", path.display())]
    SavedFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SavedProblem,
    },
    /// A conversation that was saved with another model.
    #[error("it was saved with {model}: {source}")]
    SavedWith {
        /// The other model.
        model: String,
        /// Why it does not fit.
        source: Box<RuntimeError>,
    },
    /// A request that generates nothing: there is no message.
    #[error("the conversation has no message to reply to; push one first")]
    NoMessage,
}

/// What is wrong with a saved conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedProblem {
    /// Another kind of file.
    #[error("not a conversation saved by rullama")]
    NotOurs,
    /// The header cannot be read.
    #[error("not a conversation saved by rullama: {0}")]
    Header(#[from] serde_json::Error),
    /// A later version.
    #[error("unknown version {0}; use the rullama version that saved it")]
    Version(u32),
    /// An unknown medium.
    #[error("unknown media kind {0}")]
    Kind(String),
    /// A medium without soft tokens.
    #[error("an image or audio clip has no soft tokens")]
    Empty,
    /// The file ends too early.
    #[error("the file is truncated")]
    Truncated,
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<TrainError> for Error {
    fn from(error: TrainError) -> Self {
        Self::Train(error.into())
    }
}

impl Error {
    /// A stable word for programs, such as `not_found`, `bad_file`, `out_of_memory` or `device_lost`.
    ///
    /// ```
    /// let error = rullama::Model::open("no-such-model").unwrap_err();
    /// assert_eq!(error.code(), "not_found");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(StoreError::NotFound { .. } | StoreError::NoStore { .. })
            | Self::NoDemo
            | Self::Source(SourceError::Missing { .. }) => "not_found",
            Self::Store(_) | Self::Gguf { .. } | Self::StoredMessages(_) => "bad_file",
            Self::Source(_) | Self::File { .. } => "io",
            Self::Part { source, .. }
            | Self::StoredAdapter(source)
            | Self::Drafter { source, .. } => source.code(),
            Self::Runtime(error) => error.code(),
            Self::SavedWith { source, .. } | Self::Media { source, .. } => source.code(),
            Self::Train(error) => match &**error {
                TrainError::Runtime(error) => error.code(),
                _ => "training",
            },
            Self::Adapter(_) => "bad_adapter",
            Self::Folder { .. } | Self::NoFrames { .. } | Self::FileTooLarge { .. } => "bad_media",
            Self::StoredParameters(_) => "bad_options",
            Self::Saved(_) | Self::SavedFile { .. } => "bad_session",
            Self::NoMessage => "bad_prompt",
        }
    }

    /// Whether the GPU was lost, so that a new one may help: [`crate::Session::reload`].
    pub fn is_device_lost(&self) -> bool {
        self.code() == "device_lost"
    }

    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
