//! Errors of changing a store.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rullama_store::{Digest, StoreError};

/// Why a model could not be pulled, created, copied or deleted. Cloneable, because several callers may wait for one download.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The store could not be read, or the name is not a model name.
    #[error(transparent)]
    Store(Arc<StoreError>),

    /// The name would use an unencrypted connection.
    #[error(
        "{name} would be pulled over plain http; allow it with `--insecure` (`\"insecure\": true` in a request), or use https"
    )]
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

    /// A configured address is invalid.
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

    /// The server responded with an error.
    #[error("{host} refuses {what}: status {status}{}", reason(.message))]
    Refused {
        /// The server.
        host: String,
        /// What was requested.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },

    /// The server requires credentials.
    #[error("unauthorized: access denied by {host}; {advice}")]
    Unauthorized {
        /// The server.
        host: String,
        /// Advice to the user.
        advice: &'static str,
    },

    /// A response violates the protocol.
    #[error("{host} sent an invalid response to the request for {what}: {problem}")]
    BadResponse {
        /// The server.
        host: String,
        /// What was requested.
        what: String,
        /// What is wrong with the response.
        problem: String,
    },

    /// The manifest is invalid.
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

    /// The file on the server has another size than the manifest says.
    #[error(
        "{digest} has {actual} bytes on the server, but {expected} in the manifest; pull again later"
    )]
    SizeMismatch {
        /// The blob.
        digest: Digest,
        /// Length in the manifest.
        expected: u64,
        /// Length on the server.
        actual: u64,
    },

    /// Downloaded data has the wrong digest.
    #[error("digest mismatch, file must be downloaded again: want {want}, got {got}")]
    DigestMismatch {
        /// The digest in the manifest.
        want: Digest,
        /// The digest of the data.
        got: Digest,
    },

    /// An uploaded blob has another digest than announced.
    #[error("digest mismatch, expected \"{expected}\", got \"{actual}\"")]
    BlobMismatch {
        /// The announced digest.
        expected: Digest,
        /// The digest of the data.
        actual: Digest,
    },

    /// The server accepts connections but sends nothing.
    #[error("{host} repeatedly sent nothing for {timeout:?}; pull again to continue")]
    Stalled {
        /// The server.
        host: String,
        /// The timeout.
        timeout: Duration,
    },

    /// The connection failed, or broke too often.
    #[error(
        "cannot load {what} from {host} ({attempts} attempts): {source}; pull again to continue"
    )]
    Connection {
        /// The server.
        host: String,
        /// What was requested.
        what: String,
        /// The number of attempts.
        attempts: u32,
        /// The last error.
        source: Arc<io::Error>,
    },

    /// The disk is full. The data downloaded so far is kept.
    #[error("the disk is full: cannot write {}; free some space, then pull again to continue", .path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },

    /// A file or folder cannot be read or written.
    #[error("cannot {action} {}: {source}; check permissions, or choose another folder with OLLAMA_MODELS", .path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// File or folder.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },

    /// The caller cancelled it. The data downloaded so far is kept.
    #[error("cancelled")]
    Cancelled,

    /// A repository on Hugging Face has no matching file.
    #[error("{repository} has no gguf file {}{}", wanted_text(.wanted), available_text(.available))]
    NoSuchFile {
        /// The repository.
        repository: String,
        /// The quantisation or file name in the name's tag, if any.
        wanted: Option<String>,
        /// The gguf files of the repository.
        available: Vec<String>,
    },

    /// A file on Hugging Face cannot be verified.
    #[error("{path} cannot be pulled: its server gives no SHA-256 for it")]
    NoDigest {
        /// Path in the repository.
        path: String,
    },

    /// A file is not GGUF, or its header is invalid.
    #[error("{} is not a usable gguf file: {problem}", .path.display())]
    BadGguf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },

    /// A blob named in a request has not been uploaded.
    #[error("blob {digest} (of {file:?}) is not in the store; upload it first")]
    NoSuchBlob {
        /// The name of the file.
        file: String,
        /// Its digest.
        digest: Digest,
    },

    /// A field of a request to create a model is invalid.
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

/// The error for a failed file operation.
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
    tag.as_ref().map_or_else(|| "that can be pulled".into(), |tag| format!("for {tag}"))
}

fn available_text(files: &[String]) -> String {
    if files.is_empty() { String::new() } else { format!("; it has {}", files.join(", ")) }
}
