//! `/v1/messages` and `/v1/messages/count_tokens`

use rullama_api::request::anthropic;
use rullama_api::{ApiError, Dialect, Format, GenerationRequest, Prefill, ToolChoice};
use serde_json::{Map, Value, json};

use super::support::{PNG, bytes, chat, messages};

/// A request with one message and these fields.
fn with(fields: Value) -> Result<GenerationRequest, ApiError> {
    let mut body =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend::<Map<_, _>>(fields);
    }
    anthropic::messages(&bytes(&body))
}

fn refused(fields: Value) -> String {
    with(fields).expect_err("it is wrong").to_string()
}

#[test]
fn settings() {
    let request = with(json!({
        "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}],
        "temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop_sequences": ["x", ""], "stream": true, "metadata": {"user_id": "u"},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
    })).expect("all of it is right");
    assert_eq!(request.dialect, Dialect::Anthropic);
    assert_eq!(messages(&request)[0], json!({"role": "system", "content": "a\n\nb"}));
    let options = &request.options;
    assert_eq!(
        (options.num_predict, options.top_k, options.temperature),
        (Some(9), Some(5), Some(0.5))
    );
    assert_eq!(options.stop.as_deref(), Some(&["x".to_owned()][..]));
    assert_eq!(request.format, Format::Schema(json!({"type": "object"})));
    assert!(request.stream && !request.truncate);
}

#[test]
fn thinking_is_off_unless_enabled() {
    let think = |thinking: Value| {
        with(json!({"thinking": thinking, "max_tokens": 4096})).map(|r| (r.think, r.think_budget))
    };
    assert_eq!(think(json!(null)), Ok((Some(false), None)));
    assert_eq!(think(json!({"type": "disabled"})), Ok((Some(false), None)));
    assert_eq!(
        think(json!({"type": "enabled", "budget_tokens": 2048})),
        Ok((Some(true), Some(2048)))
    );
    assert_eq!(think(json!({"type": "adaptive"})), Ok((Some(true), None)));
    assert!(think(json!({"type": "deep"})).is_err());
    let effort = |effort: &str| {
        with(json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}))
            .map(|r| r.think_budget)
    };
    assert_eq!(effort("low"), Ok(Some(2048)));
    assert_eq!(effort("max"), Ok(None));
    assert!(effort("huge").is_err());
    let whole = json!({"thinking": {"type": "enabled", "budget_tokens": 5000}, "max_tokens": 5000});
    assert_eq!(
        with(whole),
        Err(ApiError::Field {
            field: "thinking.budget_tokens".into(),
            expected: "less than `max_tokens`"
        })
    );
    assert!(with(json!({})).expect("plain").think_if_capable);
}

#[test]
fn blocks_become_turns() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    let request = with(json!({"messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "Look:"}, image,
            {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "body"}},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "redacted_thinking", "data": "?"},
            {"type": "text", "text": "I will "}, {"type": "text", "text": "look."},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"z": 1, "a": 2}},
            {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "text", "text": "And?"},
            {"type": "tool_result", "tool_use_id": "t2", "is_error": true, "content": "no such file"},
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "here"}, image]},
        ]},
        {"role": "assistant", "content": "The answer is"},
    ]})).expect("all kinds of blocks");
    let messages = messages(&request);
    assert_eq!(
        messages[0]["content"],
        json!([
            {"type": "text", "text": "Look:"}, {"type": "image", "media": 0}, {"type": "text", "text": "t\nbody"},
        ])
    );
    assert_eq!(
        (&messages[1]["reasoning"], &messages[1]["content"]),
        (&json!("Hm."), &json!("I will look."))
    );
    assert_eq!(
        messages[1]["tool_calls"][0]["function"]["arguments"].to_string(),
        r#"{"z":1,"a":2}"#
    );
    assert_eq!((&messages[2]["role"], &messages[2]["name"]), (&json!("tool"), &json!("g")));
    assert_eq!(messages[2]["content"], "Error:\nno such file");
    assert_eq!(messages[3]["content"][1], json!({"type": "image", "media": 1}));
    assert_eq!(messages[4], json!({"role": "user", "content": "And?"}));
    assert_eq!(messages.as_array().map(Vec::len), Some(5));
    assert_eq!(chat(&request).media.len(), 2);
    assert_eq!(
        chat(&request).prefill,
        Some(Prefill { thinking: None, text: "The answer is".into() })
    );
}

#[test]
fn tools() {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    let tools = json!([
        {"name": "f", "description": "d", "input_schema": schema, "cache_control": {}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]);
    let request = with(
        json!({"tools": tools, "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true}}),
    );
    let request = request.expect("tools as Claude Code sends them");
    assert_eq!(request.tools().len(), 1);
    assert_eq!(request.tools()[0].function["parameters"].to_string(), schema.to_string());
    assert_eq!(request.tool_choice, ToolChoice::Named("f".into()));
    assert!(!request.parallel_tool_calls);
    let choice = |kind: &str| {
        with(json!({"tools": tools, "tool_choice": {"type": kind}})).map(|r| r.tool_choice)
    };
    assert_eq!(choice("any"), Ok(ToolChoice::Required));
    assert_eq!(choice("none"), Ok(ToolChoice::None));
    assert!(choice("tool").is_err());
    assert!(
        refused(json!({"tools": tools, "tool_choice": {"type": "tool", "name": "h"}}))
            .contains("\"h\"")
    );
    assert!(refused(json!({"tools": [{"name": "f"}]})).contains("input_schema` is required"));
}

#[test]
fn refusals() {
    let read =
        |body: Value| anthropic::messages(&bytes(&body)).expect_err("it is wrong").to_string();
    let message = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(read(json!({"model": "m", "messages": message})), "`max_tokens` is required");
    assert_eq!(read(json!({"max_tokens": 1, "messages": message})), "model is required");
    assert_eq!(read(json!({"model": "m", "max_tokens": 1})), "`messages` is required");
    assert!(refused(json!({"max_tokens": 0})).contains("positive"));
    assert!(refused(json!({"messages": []})).contains("at least one"));
    assert!(refused(json!({"mcp_servers": [{"url": "x"}]})).contains("mcp_servers"));
    let block = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
    let url = json!({"type": "image", "source": {"type": "url", "url": "https://example.com"}});
    assert!(refused(block(url)).contains("send the image as base64"));
    let pdf = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": ""}});
    assert!(refused(block(pdf)).contains("send the document as text"));
    assert!(
        refused(block(json!({"type": "tool_result", "tool_use_id": "t"})))
            .contains("without a call")
    );
    assert!(with(block(json!({"type": "container_upload", "file_id": "f"}))).is_ok());
}

#[test]
fn count_tokens_needs_no_limit() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(anthropic::count_tokens(&bytes(&body)).map(|r| r.options.num_predict), Ok(None));
}
