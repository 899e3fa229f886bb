//! Errors in each API's shape.

use rullama_api::{ApiError, Capability, Dialect};
use serde_json::json;

const ALL: [Dialect; 4] = [Dialect::Ollama, Dialect::OpenAi, Dialect::Anthropic, Dialect::LlamaCpp];

#[test]
fn bodies() {
    let error = ApiError::ModelNotFound { model: "x".into() };
    let body = |dialect| error.reply(dialect, "req_1").body;
    assert_eq!(body(Dialect::Ollama), json!({"error": "model 'x' not found"}));
    assert_eq!(
        body(Dialect::OpenAi),
        json!({"error": {"message": "model 'x' not found", "type": "not_found_error", "param": null, "code": "model_not_found"}}),
    );
    assert_eq!(
        body(Dialect::Anthropic),
        json!({"type": "error", "error": {"type": "not_found_error", "message": "model 'x' not found"}, "request_id": "req_1"}),
    );
    assert_eq!(
        ApiError::Loading.reply(Dialect::LlamaCpp, "req_1").body,
        json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
    );
}

#[test]
fn statuses_and_types_by_error() {
    let invalid = "invalid_request_error";
    for (error, status, openai, code, anthropic) in [
        (ApiError::MissingBody, 400, invalid, None, invalid),
        (ApiError::ContextLength, 400, invalid, Some("context_length_exceeded"), invalid),
        (ApiError::Unauthorized, 401, "authentication_error", None, "authentication_error"),
        (
            ApiError::Forbidden { message: "x".into() },
            403,
            "permission_error",
            None,
            "permission_error",
        ),
        (ApiError::RouteNotFound, 404, "not_found_error", None, "not_found_error"),
        (ApiError::Busy, 503, "api_error", None, "overloaded_error"),
        (ApiError::Internal { message: "x".into() }, 500, "api_error", None, "api_error"),
    ] {
        for dialect in ALL {
            assert_eq!(error.reply(dialect, "").status, status, "{error}");
        }
        let reply = error.reply(Dialect::OpenAi, "");
        assert_eq!(reply.body["error"]["type"], openai, "{error}");
        assert_eq!(reply.body["error"]["code"].as_str(), code, "{error}");
        assert_eq!(error.reply(Dialect::Anthropic, "").body["error"]["type"], anthropic, "{error}");
        assert_eq!(reply.retry_after, (status == 503).then_some(1), "{error}");
    }
}

#[test]
fn texts_that_clients_match_on() {
    let incapable = |capability| ApiError::Incapable { model: "x".into(), capability }.to_string();
    assert_eq!(incapable(Capability::Chat), r#""x" does not support chat"#);
    assert_eq!(incapable(Capability::Completion), r#""x" does not support generate"#);
    assert_eq!(incapable(Capability::Thinking), r#""x" does not support thinking"#);
    assert_eq!(incapable(Capability::Tools), "x does not support tools");
    assert_eq!(ApiError::ContextLength.to_string(), "the input length exceeds the context length");
    assert_eq!(ApiError::InvalidModelName.to_string(), "invalid model name");
    let busy = "server busy, please try again.  maximum pending requests exceeded";
    assert_eq!(ApiError::Busy.to_string(), busy);
}
