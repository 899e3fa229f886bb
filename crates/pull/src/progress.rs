//! Progress reports of long operations.

use std::ops::ControlFlow;

use rullama_store::Digest;
use serde_json::{Value, json};

use crate::PullError;

/// A step of an operation, in Ollama's order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// The manifest is being fetched.
    PullingManifest,
    /// A blob is being downloaded; one already in the store is reported once, as complete.
    Layer {
        /// The blob.
        digest: Digest,
        /// Its length in bytes.
        total: u64,
        /// Bytes on disk.
        completed: u64,
    },
    /// A blob is being hashed.
    Verifying,
    /// The header of a file is being read.
    ParsingGguf,
    /// A new model uses an existing blob.
    UsingLayer(Digest),
    /// A new model uses a new blob.
    CreatingLayer(Digest),
    /// The manifest is being written.
    WritingManifest,
    /// Unused blobs of the replaced model are being deleted.
    RemovingUnusedLayers,
    /// The operation has succeeded.
    Success,
    /// No progress since the last report: an opportunity to cancel, without a line.
    Waiting,
}

/// Receives every report; `Break` cancels the operation, which keeps the data downloaded so far.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

impl Progress {
    /// Ollama's status text; `None` for [`Waiting`](Self::Waiting).
    pub fn status(&self) -> Option<String> {
        Some(match self {
            Self::PullingManifest => "pulling manifest".into(),
            Self::Layer { digest, .. } => format!("pulling {}", digest.short()),
            Self::Verifying => "verifying sha256 digest".into(),
            Self::ParsingGguf => "parsing GGUF".into(),
            Self::UsingLayer(digest) => format!("using existing layer {digest}"),
            Self::CreatingLayer(digest) => format!("creating new layer {digest}"),
            Self::WritingManifest => "writing manifest".into(),
            Self::RemovingUnusedLayers => "removing unused layers".into(),
            Self::Success => "success".into(),
            Self::Waiting => return None,
        })
    }

    /// The line of Ollama's HTTP API.
    pub fn line(&self) -> Option<Value> {
        let status = self.status()?;
        Some(match self {
            Self::Layer { digest, total, completed } => json!({
                "status": status, "digest": digest.to_string(), "total": total, "completed": completed
            }),
            _ => json!({ "status": status }),
        })
    }
}

/// Reports `progress`; an error if the caller cancels.
pub(crate) fn report(on_progress: OnProgress<'_>, progress: Progress) -> Result<(), PullError> {
    match on_progress(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(PullError::Cancelled),
    }
}
