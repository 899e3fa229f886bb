//! Exit codes, and error messages on standard error.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Error;
use rullama_adapter::AdapterError;
use rullama_chat::ChatError;
use rullama_gguf::GgufError;
use rullama_models::ModelError;
use rullama_pull::PullError;
use rullama_runtime::{
    RuntimeError,
    vocabulary::{FamilyError, VocabularyError},
};
use rullama_server::ServerError;
use rullama_source::SourceError;
use rullama_store::StoreError;
use rullama_tokenizer::TokenizerError;
use rullama_train::TrainError;

use crate::{interrupt, output::safe};

/// A kind of failure with its own exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Other,
    NotFound,
    BadFile,
    Network,
    Checksum,
    /// No device, device lost, or out of memory; the field is the name in JSON.
    Gpu(&'static str),
    /// Ctrl-C was pressed.
    Interrupted,
}

impl Failure {
    /// The exit code and its name in JSON.
    fn code(self) -> (u8, &'static str) {
        match self {
            Self::Other => (1, "failed"),
            Self::NotFound => (3, "not_found"),
            Self::BadFile => (4, "bad_file"),
            Self::Network => (5, "network"),
            Self::Checksum => (6, "checksum"),
            Self::Gpu(word) => (7, word),
            Self::Interrupted => (interrupt::EXIT_CODE, "interrupted"),
        }
    }
}

/// Prints the error and returns the exit code.
pub(crate) fn report(error: &Error, json: bool) -> ExitCode {
    let (code, name) = classify(error).code();
    let message = message(error);
    let text = if json {
        serde_json::json!({ "error": { "code": name, "message": message } }).to_string()
    } else {
        format!("rullama: {}", safe(&message))
    };
    // If standard error is closed, too, there is nowhere to report it.
    let _ = writeln!(std::io::stderr(), "{text}");
    ExitCode::from(code)
}

/// The error and its causes, without repetition: many messages quote their source.
pub(crate) fn message(error: &Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

fn classify(error: &Error) -> Failure {
    error.chain().find_map(failure).unwrap_or(Failure::Other)
}

fn failure(cause: &(dyn std::error::Error + 'static)) -> Option<Failure> {
    if let Some(error) = cause.downcast_ref::<GgufError>() {
        return Some(gguf_failure(error));
    }
    if let Some(error) = cause.downcast_ref::<AdapterError>() {
        return Some(adapter_failure(error));
    }
    if let Some(error) = cause.downcast_ref::<RuntimeError>() {
        return Some(runtime_failure(error));
    }
    if let Some(error) = cause.downcast_ref::<rullama::Error>() {
        return library_failure(error);
    }
    if let Some(error) = cause.downcast_ref::<TrainError>() {
        return train_failure(error);
    }
    if let Some(error) = cause.downcast_ref::<VocabularyError>() {
        return Some(vocabulary_failure(error));
    }
    if let Some(error) = cause.downcast_ref::<FamilyError>() {
        return Some(family_failure(error));
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(match error {
            StoreError::NotFound { .. } | StoreError::NoStore { .. } => Failure::NotFound,
            StoreError::HashMismatch { .. } => Failure::Checksum,
            StoreError::BadName { .. }
            | StoreError::Unreadable { .. }
            | StoreError::Cancelled { .. } => Failure::Other,
            _ => Failure::BadFile,
        });
    }
    if let Some(ServerError::OtherFamily { .. }) = cause.downcast_ref() {
        return Some(Failure::BadFile);
    }
    if let Some(error) = cause.downcast_ref::<PullError>() {
        return pull_failure(error);
    }
    if cause.is::<interrupt::Interrupted>() {
        return Some(Failure::Interrupted);
    }
    if cause.is::<TokenizerError>() || cause.is::<ChatError>() || cause.is::<ModelError>() {
        return Some(Failure::BadFile);
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return (error.kind() == io::ErrorKind::NotFound).then_some(Failure::NotFound);
    }
    cause.downcast_ref::<SourceError>().map(source_failure)
}

/// Boxed causes are not in the chain of causes; `None` if the chain is more specific.
fn library_failure(error: &rullama::Error) -> Option<Failure> {
    use rullama::Error as E;
    match error {
        E::Gguf { source, .. } => Some(gguf_failure(source)),
        E::Runtime(error) | E::StoredParameters(error) => Some(runtime_failure(error)),
        E::Media { source, .. } | E::SavedWith { source, .. } => Some(runtime_failure(source)),
        E::Train(error) => train_failure(error),
        E::Part { source, .. } | E::StoredAdapter(source) | E::Drafter { source, .. } => {
            library_failure(source)
        }
        _ => None,
    }
}

/// Nothing where its causes say more.
fn pull_failure(error: &PullError) -> Option<Failure> {
    use PullError as E;
    match error {
        E::Store(store) => match **store {
            StoreError::NotFound { .. } | StoreError::NoStore { .. } => Some(Failure::NotFound),
            _ => None,
        },
        E::NotFound { .. } | E::NoSuchFile { .. } => Some(Failure::NotFound),
        E::DigestMismatch { .. } | E::SizeMismatch { .. } => Some(Failure::Checksum),
        E::BadManifest { .. } | E::TensorLayers { .. } | E::BadGguf { .. } => {
            Some(Failure::BadFile)
        }
        E::Refused { .. }
        | E::Unauthorized { .. }
        | E::BadResponse { .. }
        | E::Stalled { .. }
        | E::Connection { .. } => Some(Failure::Network),
        E::Cancelled => Some(Failure::Interrupted),
        _ => None,
    }
}

fn gguf_failure(error: &GgufError) -> Failure {
    match error {
        GgufError::Source(source) => source_failure(source),
        // An error of writing, such as a full disk, is not a bad file.
        GgufError::Write(_) => Failure::Other,
        _ => Failure::BadFile,
    }
}

fn adapter_failure(error: &AdapterError) -> Failure {
    match error {
        AdapterError::Source(source) => source_failure(source),
        AdapterError::Gguf(error) => gguf_failure(error),
        _ => Failure::BadFile,
    }
}

fn vocabulary_failure(error: &VocabularyError) -> Failure {
    match error {
        VocabularyError::Gguf(error) => gguf_failure(error),
        _ => Failure::BadFile,
    }
}

fn family_failure(error: &FamilyError) -> Failure {
    match error {
        FamilyError::Gguf(error) => gguf_failure(error),
        _ => Failure::BadFile,
    }
}

fn runtime_failure(error: &RuntimeError) -> Failure {
    match error {
        RuntimeError::File(error) => gguf_failure(error),
        RuntimeError::Vocabulary(error) => vocabulary_failure(error),
        RuntimeError::Family(error) => family_failure(error),
        RuntimeError::Adapter(error) => adapter_failure(error),
        RuntimeError::Model(_) => Failure::BadFile,
        RuntimeError::Cancelled => Failure::Interrupted,
        _ => match error.code() {
            word @ ("no_gpu" | "device_lost" | "out_of_memory" | "timeout") => Failure::Gpu(word),
            "unsupported_format" => Failure::BadFile,
            _ => Failure::Other,
        },
    }
}

/// `None` if its causes are more specific.
fn train_failure(error: &TrainError) -> Option<Failure> {
    match error {
        TrainError::Runtime(error) => Some(runtime_failure(error)),
        TrainError::DoesNotFit { .. } | TrainError::HostExperts { .. } => {
            Some(Failure::Gpu("out_of_memory"))
        }
        TrainError::Line { .. }
        | TrainError::NoTargets
        | TrainError::NotTrained { .. }
        | TrainError::Checkpoint { .. }
        | TrainError::Adapter(_) => Some(Failure::BadFile),
        _ => None,
    }
}

fn source_failure(error: &SourceError) -> Failure {
    use SourceError as E;
    match error {
        E::Missing { .. } | E::Status { status: 404 | 410, .. } => Failure::NotFound,
        E::Empty { .. } | E::NotAFile { .. } => Failure::BadFile,
        E::NoRanges { .. } | E::WebPage { .. } | E::Status { .. } | E::WrongRange { .. } => {
            Failure::Network
        }
        E::TooManyBytes { .. } | E::Encoded { .. } | E::TooManyRedirects { .. } => Failure::Network,
        E::BadRedirect { .. } | E::BadResponse { .. } => Failure::Network,
        E::ConnectionLost { .. } | E::Stalled { .. } | E::Unreachable { .. } => Failure::Network,
        _ => Failure::Other,
    }
}
