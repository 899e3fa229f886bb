//! Errors of the engine, as clients get them.

use rullama_api::ApiError;
use rullama_runtime::RuntimeError;

/// What a failure of the runtime means for a request.
pub(crate) fn of_runtime(error: &RuntimeError) -> ApiError {
    of_code(error.code(), error.to_string())
}

/// What a failure to load means for a request.
pub(crate) fn of_load(error: &rullama::Error) -> ApiError {
    of_code(error.code(), error.to_string())
}

fn of_code(code: &str, message: String) -> ApiError {
    match code {
        "context_full" => ApiError::ContextLength,
        "busy" => ApiError::Busy,
        "bad_conversation" | "bad_options" | "bad_media" | "bad_prompt" | "bad_format"
        | "bad_adapter" | "no_tower" => ApiError::Invalid { message },
        _ => ApiError::Internal { message },
    }
}
