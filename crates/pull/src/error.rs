//! What can go wrong while a store is written to.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rullama_store::{Digest, StoreError};

/// Why a model could not be pulled, created, copied or deleted. Several callers may wait for one download, so it can be cloned.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The store could not be read, or the name is not a model name.
    #[error(transparent)]
    Store(Arc<StoreError>),

    /// A name asks for an unencrypted connection.
    #[error("{name} would be pulled over plain http; allow it with `insecure`, or use https")]
    Insecure {
        /// The model, or the address.
        name: String,
    },

    /// A scheme other than http and https.
    #[error("cannot pull over {scheme:?}; use https, or http with `insecure`")]
    UnknownScheme {
        /// The scheme.
        scheme: String,
    },

    /// A configured address is not one.
    #[error("{address:?} is not an http or https address")]
    BadAddress {
        /// The address.
        address: String,
    },

    /// The registry does not know the model.
    #[error("pull model manifest: file does not exist")]
    NotFound {
        /// The model.
        name: String,
    },

    /// The server answered with an error.
    #[error("{host} refuses {what}: status {status}{}", reason(.message))]
    Refused {
        /// The server.
        host: String,
        /// What was requested.
        what: String,
        /// The HTTP status.
        status: u16,
        /// What the server says about it.
        message: String,
    },

    /// The server wants credentials that we do not have.
    #[error("unauthorized: access denied by {host}; {advice}")]
    Unauthorized {
        /// The server.
        host: String,
        /// What the user can do.
        advice: &'static str,
    },

    /// An answer breaks the protocol.
    #[error("{host} sent an invalid answer to a request for {what}: {problem}")]
    BadAnswer {
        /// The server.
        host: String,
        /// What was requested.
        what: String,
        /// What is wrong with the answer.
        problem: String,
    },

    /// The manifest cannot be used.
    #[error("the manifest of {name} is broken: {problem}")]
    BadManifest {
        /// The model.
        name: String,
        /// What is wrong.
        problem: String,
    },

    /// The weights are safetensors.
    #[error(
        "{name} consists of safetensors, but only gguf models can be run; pull a gguf variant of it"
    )]
    TensorLayers {
        /// The model.
        name: String,
    },

    /// The server has another file than the manifest describes.
    #[error(
        "{digest} has {actual} bytes on the server, but {expected} in the manifest; pull again later"
    )]
    SizeMismatch {
        /// The blob.
        digest: Digest,
        /// Length according to the manifest.
        expected: u64,
        /// Length according to the server.
        actual: u64,
    },

    /// The bytes that came are not those that were promised.
    #[error("digest mismatch, file must be downloaded again: want {want}, got {got}")]
    DigestMismatch {
        /// What the manifest says.
        want: Digest,
        /// What the bytes give.
        got: Digest,
    },

    /// An uploaded blob does not have the digest it was announced with.
    #[error("digest mismatch, expected \"{expected}\", got \"{actual}\"")]
    BlobMismatch {
        /// The announced digest.
        expected: Digest,
        /// What the bytes give.
        actual: Digest,
    },

    /// The server is connected but sends nothing.
    #[error("{host} sent nothing for {timeout:?}, several times; pull again to continue")]
    Stalled {
        /// The server.
        host: String,
        /// How long each wait was.
        timeout: Duration,
    },

    /// No connection, or it broke too often.
    #[error(
        "cannot load {what} from {host} ({attempts} attempts): {source}; pull again to continue"
    )]
    Connection {
        /// The server.
        host: String,
        /// What was requested.
        what: String,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        source: Arc<io::Error>,
    },

    /// The disk is full. What came so far is kept.
    #[error("the disk is full: cannot write {}; free some space, then pull again to continue", .path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },

    /// The system does not let us read or write.
    #[error("cannot {action} {}: {source}; check permissions, or choose another folder with OLLAMA_MODELS", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// File or folder.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },

    /// The caller stopped it. What came so far is kept.
    #[error("cancelled")]
    Cancelled,

    /// A repository on Hugging Face has no file to pull.
    #[error("{repository} has no gguf file {}{}", wanted_text(.wanted), available_text(.available))]
    NoSuchFile {
        /// The repository.
        repository: String,
        /// The quantisation or file name in the name's tag, if there was one.
        wanted: Option<String>,
        /// The gguf files that are there.
        available: Vec<String>,
    },

    /// A file on Hugging Face cannot be verified.
    #[error("{path} cannot be pulled: its server gives no SHA-256 for it")]
    NoDigest {
        /// Path in the repository.
        path: String,
    },

    /// A file is not GGUF, or its header is broken.
    #[error("{} is not a usable gguf file: {problem}", .path.display())]
    BadGguf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },

    /// A blob that a request names has not been uploaded.
    #[error("blob {digest} (of {file:?}) is not in the store; upload it first")]
    NoSuchBlob {
        /// The name of the file.
        file: String,
        /// Its digest.
        digest: Digest,
    },

    /// A field of a request to create a model is wrong.
    #[error("cannot create the model: {problem}")]
    BadRequest {
        /// What is wrong, and what to do.
        problem: String,
    },
}

impl From<StoreError> for PullError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// What a failed operation on a file means.
pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> PullError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            PullError::DiskFull { path }
        }
        _ => PullError::Io { action, path, source: Arc::new(source) },
    }
}

fn reason(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(" ({message})") }
}

fn wanted_text(tag: &Option<String>) -> String {
    tag.as_ref().map_or_else(|| "that could be pulled".into(), |tag| format!("for {tag}"))
}

fn available_text(files: &[String]) -> String {
    if files.is_empty() { String::new() } else { format!("; it has {}", files.join(", ")) }
}
