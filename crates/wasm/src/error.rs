//! Errors as JavaScript exceptions with a `code` of the client's `ErrorCode`.

use std::error::Error;

use js_sys::Reflect;
use rullama_adapter::AdapterError;
use rullama_engine::EngineError;
use rullama_runtime::{RuntimeError, embedder::EmbeddingPrompt};
use rullama_train::TrainError;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;

/// A failure of the runtime, or of the script that reads bytes.
#[derive(Debug)]
pub(crate) enum Failure {
    Runtime(RuntimeError),
    /// The request is invalid.
    Request(serde_json::Error),
    /// An error a script threw; it is rethrown unchanged.
    Script(JsValue),
    /// A projector file was given instead of a model.
    Projector,
    /// The session is in use.
    Busy,
    /// There is no image or audio clip with this number.
    NoMedium(u32),
    /// There is no embedding prompt with this name.
    Purpose(String),
    /// There is no adapter with this id.
    NoAdapter(String),
    /// This works on a GPU alone, and the model is on the CPU.
    NeedsGpu(&'static str),
    /// Training cannot start or continue.
    Training(TrainError),
}

impl Failure {
    /// An error that several replies have.
    pub(crate) fn shared(error: &RuntimeError) -> Self {
        Self::Script(runtime_error(error))
    }
}

impl<E: Into<RuntimeError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Runtime(error) => runtime_error(&error),
            Failure::Training(error) => training_error(error),
            Failure::NoAdapter(id) => {
                thrown("bad_adapter", &format!("the model has no adapter {id:?}: add it first"))
            }
            Failure::Request(error) => thrown("bad_options", &format!("invalid request: {error}")),
            Failure::Script(error) => error,
            Failure::Projector => thrown(
                "projector",
                "this file is a projector (vision and audio encoders): load its model with this file as the projector",
            ),
            Failure::NeedsGpu(what) => {
                thrown("no_webgpu", &format!("{what} needs a GPU, and there is only the CPU here"))
            }
            Failure::Busy => thrown("internal", "the session is busy: calls must be queued"),
            Failure::Purpose(name) => {
                let names: Vec<&str> = EmbeddingPrompt::ALL.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                thrown("bad_options", &format!("unknown prompt {name}; choose one of {names}"))
            }
            Failure::NoMedium(number) => {
                thrown("internal", &format!("no image or audio clip number {number}"))
            }
        }
    }
}

fn runtime_error(error: &RuntimeError) -> JsValue {
    let message = whole_message(error);
    let RuntimeError::Adapter(AdapterError::DoesNotFit { misfits, .. }) = error else {
        return thrown(client_code(error), &message);
    };
    let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
    thrown_with("bad_adapter", &message, &json!({ "misfits": misfits }))
}

/// Errors of the runtime keep their codes.
fn training_error(error: TrainError) -> JsValue {
    let message = error.to_string();
    match error {
        TrainError::Runtime(error) => runtime_error(&error),
        TrainError::Adapter(error) => runtime_error(&error.into()),
        TrainError::Engine(error) => runtime_error(&error.into()),
        TrainError::Line { line, .. } => {
            thrown_with("bad_data", &message, &json!({ "line": line }))
        }
        TrainError::NoTargets | TrainError::Split { .. } => thrown("bad_data", &message),
        TrainError::DoesNotFit { .. } => thrown("does_not_fit", &message),
        TrainError::Diverged { .. } => thrown("diverged", &message),
        TrainError::Checkpoint { .. } => thrown("bad_checkpoint", &message),
        _ => thrown("bad_options", &message),
    }
}

/// The client's error code; it has fewer than the runtime.
fn client_code(error: &RuntimeError) -> &'static str {
    match error {
        RuntimeError::DoesNotFit { .. }
        | RuntimeError::Engine(EngineError::CacheTooLarge { .. }) => "does_not_fit",
        RuntimeError::BadContext { .. } => "bad_options",
        _ => match error.code() {
            "bad_file" | "missing_tensor" => "bad_file",
            "unsupported_model" | "unsupported_format" | "bad_vocabulary" => "unsupported_model",
            "no_gpu" => "no_webgpu",
            "device_lost" | "timeout" => "device_lost",
            "out_of_memory" => "out_of_memory",
            "context_full" => "context_full",
            "bad_media" | "no_tower" => "bad_media",
            "bad_adapter" => "bad_adapter",
            "cancelled" => "cancelled",
            "bad_conversation" | "bad_format" | "bad_options" | "bad_prompt" | "bad_session" => {
                "bad_options"
            }
            _ => "internal",
        },
    }
}

/// The message, followed by those of its causes that it does not repeat.
fn whole_message(error: &RuntimeError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text += &format!(": {more}");
        }
        cause = error.source();
    }
    text
}

fn thrown(code: &str, message: &str) -> JsValue {
    let error = js_sys::Error::new(message);
    // Setting a property of a new object cannot fail.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}

/// An exception with the fields of the client's error class, as JSON.
fn thrown_with(code: &str, message: &str, fields: &Value) -> JsValue {
    let error = thrown(code, message);
    // Cannot fail, as in `thrown`.
    let _ = Reflect::set(&error, &"fields".into(), &fields.to_string().into());
    error
}

#[cfg(test)]
mod tests {
    use rullama_engine::EngineError;
    use rullama_runtime::RuntimeError;

    use super::{client_code, whole_message};

    #[test]
    fn codes_are_the_clients() {
        let out_of_memory = EngineError::OutOfMemory { what: "x".into(), bytes: 1 };
        let no_kernel = EngineError::UnsupportedFormat { name: "x".into(), format: "IQ3_S" };
        for (error, code) in [
            (no_kernel.into(), "unsupported_model"),
            (RuntimeError::Cancelled, "cancelled"),
            (RuntimeError::EmptyPrompt, "bad_options"),
            (RuntimeError::BadContext { requested: 0, trained: 1 }, "bad_options"),
            (RuntimeError::ContextFull { tokens: 2, context: 1, trained: 1 }, "context_full"),
            (EngineError::DeviceLost.into(), "device_lost"),
            (EngineError::Timeout.into(), "device_lost"),
            (out_of_memory.into(), "out_of_memory"),
            (EngineError::MissingWeight { name: "x".into() }.into(), "internal"),
        ] {
            assert_eq!(client_code(&error), code, "{error}");
            assert!(!whole_message(&error).is_empty());
        }
    }
}
