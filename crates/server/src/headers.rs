//! Headers that every answer carries.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::Response,
};

/// Cross-origin isolation (which shared memory in workers needs), no guessing of types, no telling of addresses.
const ALWAYS: [(HeaderName, &str); 6] = [
    // How our own commands tell this server from Ollama.
    (header::SERVER, concat!("rullama/", env!("CARGO_PKG_VERSION"))),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// What a page may load: its own scripts and wasm; models also from other servers. The hash is that of the frame of the app's sandbox.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' \
    'sha256-BRbGAi+wjla/WhyJiPRqOOYuZTc8veKvHLYsMNNxYd0='; worker-src 'self' blob:; \
    style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self'; \
    connect-src 'self' https: http://127.0.0.1:* http://localhost:*; manifest-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// Adds them.
pub(crate) async fn complete(mut response: Response) -> Response {
    let is_page = is_page(response.headers());
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_page {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    }
    response
}

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}
