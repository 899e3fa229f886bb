//! `/v1/responses`

use rullama_api::request::openai::{self, ResponsesRequest};
use rullama_api::{ApiError, Format, ToolChoice};
use serde_json::{Value, json};

use super::support::{PNG, bytes, chat, messages};

fn read(body: &Value) -> Result<ResponsesRequest, ApiError> {
    openai::responses(&bytes(body))
}

#[test]
fn a_text_is_a_user_message() {
    let request =
        read(&json!({"model": "m", "input": "hi", "instructions": "Be brief."})).expect("plain");
    assert_eq!(
        messages(&request.generation),
        json!([
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
        ])
    );
    assert_eq!(request.echo["instructions"], "Be brief.");
    assert_eq!(request.echo["tool_choice"], "auto");
    assert_eq!(request.echo["text"], json!({"format": {"type": "text"}}));
}

#[test]
fn items_become_turns() {
    let request = read(&json!({"model": "m", "input": [
        {"role": "developer", "content": "d"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}"), "detail": "auto"},
        ]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "short"}], "encrypted_content": "long"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"type": "web_search_call", "id": "ws_1"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Then"}]},
        {"role": "assistant", "content": "Done."},
    ]})).expect("all kinds of items");
    let messages = messages(&request.generation);
    let roles: Vec<&str> =
        messages.as_array().expect("a list").iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant"]);
    assert_eq!(messages[2]["reasoning"], "long");
    assert_eq!(messages[2]["content"], "One moment.");
    assert_eq!(messages[2]["tool_calls"][1]["function"]["name"], "g");
    assert_eq!((&messages[3]["name"], &messages[3]["content"]), (&json!("g"), &json!("two")));
    assert_eq!(
        (&messages[5]["reasoning"], &messages[5]["content"]),
        (&json!("Then"), &json!("Done."))
    );
    assert_eq!(chat(&request.generation).media.len(), 1);
    assert_eq!(chat(&request.generation).prefill, None);
}

#[test]
fn tools_are_flat_and_unsupported_ones_are_skipped() {
    let parameters = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    let request = read(&json!({"model": "m", "input": "hi", "tool_choice": {"type": "function", "name": "f"}, "tools": [
        {"type": "function", "name": "f", "description": "d", "parameters": parameters, "strict": true},
        {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "read", "parameters": {}}]},
        {"type": "web_search"}, {"type": "custom", "name": "apply_patch"}, {"type": "tool_search"},
    ]})).expect("tools as Codex sends them");
    let names: Vec<&str> = request.generation.tools().iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["f", "files.read"]);
    assert_eq!(
        request.generation.tools()[0].function["parameters"].to_string(),
        parameters.to_string()
    );
    assert_eq!(request.generation.tool_choice, ToolChoice::Named("f".into()));
    assert_eq!(request.echo["tools"].as_array().map(Vec::len), Some(5));
}

#[test]
fn settings() {
    let schema = json!({"type": "object"});
    let request = read(&json!({
        "model": "m", "input": "hi", "max_output_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stream": true,
        "reasoning": {"effort": "high", "summary": "auto"}, "parallel_tool_calls": false, "store": false,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}, "metadata": {"k": "v"},
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"], "previous_response_id": null,
    })).expect("all of it is right");
    let generation = &request.generation;
    assert_eq!((generation.options.num_predict, generation.think), (Some(9), Some(true)));
    assert_eq!(generation.format, Format::Schema(schema));
    assert_eq!(generation.logprobs, Some(0));
    assert!(generation.stream && !generation.parallel_tool_calls);
    assert_eq!(request.echo["temperature"], 0.5);
    assert_eq!(request.echo["metadata"], json!({"k": "v"}));
    assert_eq!(request.echo["store"], false);
}

#[test]
fn refusals() {
    for (field, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!({"id": "conv_1"})),
        ("background", json!(true)),
        ("prompt", json!({"id": "p"})),
        ("n", json!(2)),
        ("max_output_tokens", json!(0)),
        ("input", json!([])),
        ("input", json!(5)),
        ("input", json!([{"type": "item_reference", "id": "msg_1"}])),
        (
            "input",
            json!([{"type": "message", "role": "user", "content": [{"type": "input_file"}]}]),
        ),
        ("input", json!([{"type": "function_call_output", "call_id": "x", "output": "?"}])),
        (
            "input",
            json!([{"type": "function_call", "call_id": "x", "name": "f", "arguments": "no"}]),
        ),
    ] {
        let mut body = json!({"model": "m", "input": "hi"});
        body[field] = value;
        assert!(read(&body).is_err(), "{body}");
    }
    assert!(read(&json!({"model": "m", "input": "hi", "background": false})).is_ok());
}
