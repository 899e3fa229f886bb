//! Errors of requests, with the texts that clients match on.

use crate::Capability;

/// Why a request was refused, or why its response ended early. [`ApiError::reply`](Self::reply) gives the status and the
/// body in the client's API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The body is empty.
    #[error("missing request body")]
    MissingBody,
    /// The body is not JSON.
    #[error("invalid JSON: {reason}")]
    Json {
        /// The parser's message, with line and column.
        reason: String,
    },
    /// The request names no model.
    #[error("model is required")]
    ModelRequired,
    /// The model's name is malformed.
    #[error("invalid model name")]
    InvalidModelName,
    /// A required field is absent or null.
    #[error("`{field}` is required")]
    Missing {
        /// The field's path, such as `messages[0].role`.
        field: String,
    },
    /// A field has the wrong type or an impossible value.
    #[error("`{field}` must be {expected}")]
    Field {
        /// The field's path.
        field: String,
        /// The expected value.
        expected: &'static str,
    },
    /// A sampling or load option has the wrong type.
    #[error("option \"{option}\" must be of type {expected}")]
    OptionType {
        /// The option's name.
        option: String,
        /// The type it must have.
        expected: &'static str,
    },
    /// An output format that is neither JSON mode nor a schema.
    #[error("invalid format: {got}; expected \"json\" or a valid JSON Schema object")]
    Format {
        /// The value as JSON.
        got: String,
    },
    /// `think` is neither a boolean nor a known level.
    #[error(
        "invalid think value: {got} (must be \"high\", \"medium\", \"low\", \"max\", true, or false)"
    )]
    Think {
        /// The value as JSON.
        got: String,
    },
    /// A feature that is not supported and must not be ignored silently.
    #[error("`{field}` is not supported: {advice}")]
    Unsupported {
        /// The field's path, with its value where that matters.
        field: String,
        /// What to do instead.
        advice: &'static str,
    },
    /// A tool that is not declared.
    #[error("`{field}` names the tool \"{name}\", which `tools` does not declare")]
    UnknownTool {
        /// The field's path.
        field: String,
        /// The tool's name.
        name: String,
    },
    /// A tool result without a call.
    #[error(
        "`messages[{index}]` is a tool result without a call: it must follow an assistant message with tool calls"
    )]
    ResultWithoutCall {
        /// The index of the message.
        index: usize,
    },
    /// The conversation ends with tool calls, whose results must come next.
    #[error("the last message calls tools: append their results, one message per call")]
    UnansweredCalls,
    /// The model lacks a capability that the request needs.
    #[error("{}", capability.refusal(model))]
    Incapable {
        /// The model's name.
        model: String,
        /// The missing capability.
        capability: Capability,
    },
    /// An error found after parsing, such as a schema that cannot be compiled to a grammar.
    #[error("{message}")]
    Invalid {
        /// The whole message.
        message: String,
    },
    /// The prompt does not fit the context.
    #[error("the input length exceeds the context length")]
    ContextLength,
    /// The API key is missing or wrong.
    #[error("invalid API key")]
    Unauthorized,
    /// The host or origin is not allowed.
    #[error("{message}")]
    Forbidden {
        /// The whole message.
        message: String,
    },
    /// The model does not exist.
    #[error("model '{model}' not found")]
    ModelNotFound {
        /// The name as the client wrote it.
        model: String,
    },
    /// The route does not exist.
    #[error("not found")]
    RouteNotFound,
    /// The route exists, but not for this method.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// A route of the original API that is not implemented.
    #[error("{message}")]
    NotImplemented {
        /// The whole message.
        message: String,
    },
    /// The body exceeds the server's limit.
    #[error("request body too large: at most {limit} bytes are accepted")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The queue is full.
    #[error("server busy, please try again.  maximum pending requests exceeded")]
    Busy,
    /// The model given at startup is still loading.
    #[error("Loading model")]
    Loading,
    /// A fault of the server or the engine.
    #[error("{message}")]
    Internal {
        /// The whole message.
        message: String,
    },
}

impl ApiError {
    /// A field of the wrong type or value.
    pub(crate) fn field(field: impl Into<String>, expected: &'static str) -> Self {
        Self::Field { field: field.into(), expected }
    }

    /// A field that must not be ignored and is not supported.
    pub(crate) fn unsupported(field: impl Into<String>, advice: &'static str) -> Self {
        Self::Unsupported { field: field.into(), advice }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::Forbidden { .. } => 403,
            Self::ModelNotFound { .. } | Self::RouteNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::TooLarge { .. } => 413,
            Self::NotImplemented { .. } => 501,
            Self::Busy | Self::Loading => 503,
            Self::Internal { .. } => 500,
            _ => 400,
        }
    }
}
