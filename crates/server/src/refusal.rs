//! Answers that are errors: a status and `{"error":{"code":…,"message":…}}`.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

/// Why a request is not answered as asked.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), header: None }
    }

    /// Nothing is there, or nothing that is served.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// This client or site may not ask.
    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// It should have worked.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// The path is there, but not for this method.
    pub(crate) fn method() -> Self {
        let message = "only GET and HEAD are supported";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
            .with(header::ALLOW, HeaderValue::from_static("GET, HEAD"))
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let fixed =
            [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
        let mut response = (self.status, fixed, body.to_string()).into_response();
        response.headers_mut().extend(self.header);
        response
    }
}
