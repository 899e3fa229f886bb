//! Errors of the library.

use std::{io, path::PathBuf};

use rullama_adapter::AdapterError;
use rullama_gguf::GgufError;
use rullama_runtime::RuntimeError;
use rullama_source::SourceError;
use rullama_store::StoreError;
use rullama_train::TrainError;

/// Why a model cannot be opened or used. The message says what to do; [`Error::code`] is for programs. Large causes are
/// boxed to keep results small.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is not in Ollama's store, or the store is damaged.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file or URL cannot be read.
    #[error("{0}")]
    Source(#[from] SourceError),
    /// A file is not a valid GGUF file.
    #[error("{name}: {source}")]
    Gguf {
        /// The file.
        name: String,
        /// The cause.
        source: Box<GgufError>,
    },
    /// A part of a split model cannot be read.
    #[error("the model has {count} parts, which must be in the same folder: {source}")]
    Part {
        /// Number of parts.
        count: u16,
        /// The cause.
        source: Box<Self>,
    },
    /// The file of measured tunings is damaged.
    #[error("{}: {source}; delete the file, or measure again with `rullama tune`", path.display())]
    Tuning {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The demo model, in a build without the feature `demo`.
    #[error("this build has no demo model: enable the feature `demo`, or open another model")]
    NoDemo,
    /// The model cannot be loaded, or generation failed.
    #[error("{0}")]
    Runtime(#[source] Box<RuntimeError>),
    /// Training failed.
    #[error("{0}")]
    Train(#[source] Box<TrainError>),
    /// An adapter cannot be read or written.
    #[error("{0}")]
    Adapter(#[from] AdapterError),
    /// The adapter stored with a model of Ollama's store cannot be read.
    #[error("the adapter stored with this model: {0}")]
    StoredAdapter(#[source] Box<Self>),
    /// A drafter given by name cannot be used.
    #[error("{name}: {source}")]
    Drafter {
        /// The drafter.
        name: String,
        /// The cause.
        source: Box<Self>,
    },
    /// The messages stored with a model of Ollama's store are invalid.
    #[error("the messages stored with this model: {0}")]
    StoredMessages(#[source] serde_json::Error),
    /// The parameters stored with a model of Ollama's store are invalid.
    #[error("the parameters stored with this model: {0}")]
    StoredParameters(#[source] Box<RuntimeError>),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An image, audio clip or video cannot be used.
    #[error("{name}: {source}")]
    Media {
        /// Its file, or its kind.
        name: String,
        /// The cause.
        source: Box<RuntimeError>,
    },
    /// A folder instead of an image or audio file.
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
    /// A file above the size limit for images and audio.
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
        /// The cause.
        source: SavedProblem,
    },
    /// A conversation saved with another model.
    #[error("it was saved with {model}: {source}")]
    SavedWith {
        /// The other model.
        model: String,
        /// Why it does not fit.
        source: Box<RuntimeError>,
    },
    /// The conversation has no message to reply to.
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
    /// A format version this build does not know.
    #[error("unknown version {0}; use the rullama version that saved it")]
    Version(u32),
    /// An unknown kind of medium.
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
    /// A stable error code for programs, such as `not_found`, `bad_file`, `out_of_memory` or `device_lost`.
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
            Self::Store(_) | Self::Gguf { .. } | Self::StoredMessages(_) | Self::Tuning { .. } => {
                "bad_file"
            }
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

    /// Whether the GPU was lost; [`crate::Session::reload`] opens a new one.
    pub fn is_device_lost(&self) -> bool {
        self.code() == "device_lost"
    }

    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
