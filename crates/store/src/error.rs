//! Errors of a store.

use std::{fmt, io, path::PathBuf};

use crate::{Digest, LayerKind, NamePart, NameRule};

/// Why a model could not be found, read or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not a model name.
    #[error("{name:?} is not a model name: its {part} {rule}")]
    BadName {
        /// The text.
        name: String,
        /// The part that breaks a rule.
        part: NamePart,
        /// The rule.
        rule: NameRule,
    },

    /// There is no folder where the store should be.
    #[error("no model store at {}; set OLLAMA_MODELS if it is elsewhere", .root.display())]
    NoStore {
        /// The folder.
        root: PathBuf,
    },

    /// The system refused to read a file or folder.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// File or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// No model of this name.
    #[error("no model {name} in {}; {}", list(.searched), advice(.name, .similar))]
    NotFound {
        /// Its short name.
        name: String,
        /// The stores searched.
        searched: Vec<Searched>,
        /// Similar names of stored models, best first.
        similar: Vec<String>,
    },

    /// A file that should be small is too large.
    #[error("{} has {len} bytes, more than the {max} allowed for this kind of file", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length, or the bytes read so far.
        len: u64,
        /// The limit.
        max: u64,
    },

    /// The manifest is broken.
    #[error("the manifest {} is broken: {problem}; run `rullama pull` for this model again", .path.display())]
    BadManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: ManifestProblem,
    },

    /// A blob that the manifest names is not there.
    #[error(
        "{name}: the file of its {kind} is missing{}: {}; run `rullama pull {name}` again",
        if *.partial { " (its download did not finish)" } else { "" },
        .path.display()
    )]
    MissingBlob {
        /// The model.
        name: String,
        /// What the blob holds.
        kind: LayerKind,
        /// Its path.
        path: PathBuf,
        /// Whether an unfinished download of it exists.
        partial: bool,
    },

    /// A blob has another length than the manifest says.
    #[error(
        "{name}: the file of its {kind} has {actual} bytes instead of {expected}: {}; delete it and run `rullama pull {name}` again",
        .path.display()
    )]
    WrongSize {
        /// The model.
        name: String,
        /// What the blob holds.
        kind: LayerKind,
        /// The blob.
        path: PathBuf,
        /// Length according to the manifest.
        expected: u64,
        /// Length on disk.
        actual: u64,
    },

    /// The weights are in another format than GGUF.
    #[error(
        "{name} is stored as {}, but only gguf models can be read; pull a gguf variant of it",
        if .format.is_empty() { "an unnamed format" } else { .format }
    )]
    NotGguf {
        /// The model.
        name: String,
        /// Its format.
        format: String,
    },

    /// The manifest names no weights.
    #[error("{name} has no weights (no model layer); run `rullama pull {name}` again")]
    NoWeights {
        /// The model.
        name: String,
    },

    /// The model runs on another machine.
    #[error(
        "{name} is a remote model: it runs at {host} and has no local weights; pull a local variant"
    )]
    Remote {
        /// The model.
        name: String,
        /// Where it runs.
        host: String,
    },

    /// A text is not UTF-8.
    #[error("{name}: its {kind} is not UTF-8 text: {}; run `rullama pull {name}` again", .path.display())]
    BadText {
        /// The model.
        name: String,
        /// What the blob holds.
        kind: LayerKind,
        /// The blob.
        path: PathBuf,
    },

    /// A blob is not valid JSON, or not of the expected shape.
    #[error("{name}: cannot read its {kind}: {}: {source}; run `rullama pull {name}` again", .path.display())]
    BadJson {
        /// The model.
        name: String,
        /// What the blob holds.
        kind: LayerKind,
        /// The blob.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },

    /// A file does not match its digest.
    #[error(
        "{} is damaged: its SHA-256 is {actual}, expected {expected}; delete it and pull the model again",
        .path.display()
    )]
    HashMismatch {
        /// The file.
        path: PathBuf,
        /// The digest in the manifest.
        expected: Digest,
        /// The digest of the file's bytes.
        actual: Digest,
    },

    /// The caller cancelled.
    #[error("checking {} was cancelled", .path.display())]
    Cancelled {
        /// The file.
        path: PathBuf,
    },
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestProblem {
    /// It is not valid JSON, or not of the expected shape.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It lists more layers than allowed.
    #[error("it lists {count} layers, more than {max}")]
    TooManyLayers {
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// It has neither a config nor layers.
    #[error("it names neither a config nor layers")]
    NoConfig,
    /// An invalid digest; it could name any file.
    #[error("the digest of its {kind} is not `sha256:` and 64 hex digits: {digest:?}")]
    BadDigest {
        /// What the layer holds.
        kind: LayerKind,
        /// The text in its place.
        digest: String,
    },
    /// An invalid size.
    #[error("the size of its {kind} is not a whole number of bytes")]
    BadSize {
        /// What the layer holds.
        kind: LayerKind,
    },
}

/// A store that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Its folder.
    pub root: PathBuf,
    /// The result.
    pub outcome: Outcome,
}

/// The result of searching a store without finding the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The store was read; it does not have the model.
    Read,
    /// The folder does not exist.
    NoFolder,
    /// The folder or one of its subfolders could not be read: the model may be in it.
    Unreadable,
}

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = match self.outcome {
            Outcome::Read => "",
            Outcome::NoFolder => " (no such folder)",
            Outcome::Unreadable => " (permission denied)",
        };
        write!(f, "{}{note}", self.root.display())
    }
}

fn list(searched: &[Searched]) -> String {
    if searched.is_empty() {
        return "any store: none is known (set OLLAMA_MODELS to its folder)".into();
    }
    searched.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn advice(name: &str, similar: &[String]) -> String {
    if similar.is_empty() {
        return format!("`rullama pull {name}` downloads it, `rullama list` shows local models");
    }
    format!("did you mean {}? `rullama pull {name}` downloads {name}", similar.join(", "))
}
