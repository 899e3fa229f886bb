//! Errors in the shape of each API.

use serde_json::{Value, json};

use crate::{ApiError, Dialect};

/// An HTTP error response, sent before the first frame of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorReply {
    /// The HTTP status.
    pub status: u16,
    /// The JSON body.
    pub body: Value,
    /// The value of `Retry-After` in seconds, if a retry may help.
    pub retry_after: Option<u32>,
}

impl ApiError {
    /// Status and body for a client of this API. `request_id` is the one sent in the headers (`req_…`); only Anthropic's
    /// body repeats it.
    pub fn reply(&self, dialect: Dialect, request_id: &str) -> ErrorReply {
        let retry_after = matches!(self, Self::Busy | Self::Loading).then_some(1);
        let mut body = self.body(dialect);
        if dialect == Dialect::Anthropic {
            body["request_id"] = Value::from(request_id);
        }
        ErrorReply { status: self.status(), body, retry_after }
    }

    /// The body without a request id, as it appears inside a stream.
    pub(crate) fn body(&self, dialect: Dialect) -> Value {
        let message = self.to_string();
        match dialect {
            Dialect::Ollama => json!({ "error": message }),
            Dialect::OpenAi => json!({ "error": {
                "message": message,
                "type": self.openai_type(),
                "param": null,
                "code": self.openai_code(),
            }}),
            Dialect::Anthropic => json!({
                "type": "error",
                "error": { "type": self.anthropic_type(), "message": message },
            }),
            Dialect::LlamaCpp => json!({ "error": {
                "code": self.status(),
                "message": message,
                "type": self.llamacpp_type(),
            }}),
        }
    }

    /// The code of OpenAI's error object.
    fn openai_code(&self) -> Option<&'static str> {
        match self {
            Self::ContextLength => Some("context_length_exceeded"),
            Self::ModelNotFound { .. } => Some("model_not_found"),
            _ => None,
        }
    }

    /// The error code of a failed response; Codex knows these three and retries on all others.
    pub(crate) fn responses_code(&self) -> &'static str {
        match (self, self.status()) {
            (Self::ContextLength, _) => "context_length_exceeded",
            (Self::Busy | Self::Loading, _) => "server_is_overloaded",
            (_, 400..=499) => "invalid_prompt",
            _ => "server_error",
        }
    }

    fn openai_type(&self) -> &'static str {
        match self.status() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            400..=499 => "invalid_request_error",
            501 => "not_supported_error",
            _ => "api_error",
        }
    }

    fn anthropic_type(&self) -> &'static str {
        match self.status() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            400..=499 => "invalid_request_error",
            503 => "overloaded_error",
            _ => "api_error",
        }
    }

    fn llamacpp_type(&self) -> &'static str {
        match self.status() {
            501 => "not_supported_error",
            503 => "unavailable_error",
            500 => "server_error",
            _ => self.openai_type(),
        }
    }
}
