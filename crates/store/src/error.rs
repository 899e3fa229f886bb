//! What can go wrong in a store.

use std::{fmt, io, path::PathBuf};

use crate::{Digest, LayerKind, NamePart, NameRule};

/// Why a model could not be found, read or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not a model name.
    #[error("{name:?} is not a model name: its {part} {rule}")]
    BadName {
        /// What was given.
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

    /// The system does not let us read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// File or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// No model of this name.
    #[error("no model {name} in {}; {}", list(.searched), advice(.near))]
    NotFound {
        /// Its short name.
        name: String,
        /// The stores looked into.
        searched: Vec<Searched>,
        /// Names that are there and look similar, best first.
        near: Vec<String>,
    },

    /// A file that should be small is not.
    #[error("{} has {len} bytes, more than the {max} allowed for this kind of file", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length, as far as it was looked at.
        len: u64,
        /// The limit.
        max: u64,
    },

    /// The manifest is broken.
    #[error("the manifest {} is broken: {problem}; run `ollama pull` for this model again", .path.display())]
    BadManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: ManifestProblem,
    },

    /// A blob that the manifest names is not there.
    #[error(
        "{name}: the file of its {kind} is missing{}: {}; run `ollama pull {name}` again",
        if *.partial { " (its download did not finish)" } else { "" },
        .path.display()
    )]
    MissingBlob {
        /// The model.
        name: String,
        /// What the blob holds.
        kind: LayerKind,
        /// Where it should be.
        path: PathBuf,
        /// Whether an unfinished download of it is there.
        partial: bool,
    },

    /// A blob has another length than the manifest says.
    #[error(
        "{name}: the file of its {kind} has {actual} bytes instead of {expected}: {}; delete it and run `ollama pull {name}` again",
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
    #[error("{name} has no weights (no model layer); run `ollama pull {name}` again")]
    NoWeights {
        /// The model.
        name: String,
    },

    /// The model runs on somebody else's machine.
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
    #[error("{name}: its {kind} is not UTF-8 text: {}; run `ollama pull {name}` again", .path.display())]
    BadText {
        /// The model.
        name: String,
        /// What the blob holds.
        kind: LayerKind,
        /// The blob.
        path: PathBuf,
    },

    /// A blob is not the JSON it should be.
    #[error("{name}: cannot read its {kind}: {}: {source}; run `ollama pull {name}` again", .path.display())]
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

    /// A file does not hold the bytes its name promises.
    #[error(
        "{} is damaged: its SHA-256 is {actual}, expected {expected}; delete it and pull the model again",
        .path.display()
    )]
    HashMismatch {
        /// The file.
        path: PathBuf,
        /// What the manifest says.
        expected: Digest,
        /// What the bytes give.
        actual: Digest,
    },

    /// The caller asked to stop.
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
    /// It is not the JSON it should be.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It lists more layers than any model has.
    #[error("it lists {count} layers, more than {max}")]
    TooManyLayers {
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// It names nothing.
    #[error("it names neither a config nor layers")]
    NoConfig,
    /// A digest that is no digest, and so could name any file.
    #[error("the digest of its {kind} is not `sha256:` and 64 hex digits: {digest:?}")]
    BadDigest {
        /// What the layer holds.
        kind: LayerKind,
        /// What stands there.
        digest: String,
    },
    /// A size that is no size.
    #[error("the size of its {kind} is not a whole number of bytes")]
    BadSize {
        /// What the layer holds.
        kind: LayerKind,
    },
}

/// A store that was looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Its folder.
    pub root: PathBuf,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of looking into a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is there; the model is not.
    Read,
    /// There is no such folder.
    NoFolder,
    /// The folder, or some folder in it, could not be read: the model may be there.
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

fn advice(near: &[String]) -> String {
    if near.is_empty() {
        return "`ollama list` shows local models, `ollama pull` downloads more".into();
    }
    format!("did you mean {}?", near.join(", "))
}
