//! Events of `/v1/responses`

use rullama_api::request::openai::{ResponsesRequest, responses};
use rullama_api::response::ReplyWriter;
use rullama_api::response::openai::ResponsesWriter;
use rullama_api::{ApiError, DoneReason, GenerationEvent};
use serde_json::{Value, json};

use super::support::{Fixed, done, everything, server_sent, started, stream, text};

pub(crate) fn request() -> ResponsesRequest {
    responses(br#"{"model": "m", "input": "hi"}"#).expect("a request")
}

fn writer() -> ResponsesWriter {
    ResponsesWriter::new(&mut Fixed(0), &request())
}

/// Type and the other fields without sequence numbers.
fn events(stream: &str) -> Vec<(String, Value)> {
    let events = server_sent(stream).into_iter().enumerate().map(|(index, (name, mut data))| {
        let fields = data.as_object_mut().expect("an object");
        let kind = fields.shift_remove("type").expect("a type");
        assert_eq!(name.as_deref(), kind.as_str(), "the frame's name is the type");
        assert_eq!(fields.shift_remove("sequence_number"), Some(json!(index)));
        let kind = kind.as_str().and_then(|kind| kind.strip_prefix("response."));
        (kind.expect("a prefix").to_owned(), data)
    });
    events.collect()
}

#[test]
fn all_kinds_of_items() {
    let stream = stream(&mut writer(), &everything());
    let events = events(&stream);
    let rs = json!("rs_0000000000000065");
    let msg = json!("msg_0000000000000066");
    let fc = json!("fc_0000000000000067");
    let summary = json!({"type": "summary_text", "text": "Let"});
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let reasoning =
        json!({"id": rs, "type": "reasoning", "summary": [summary], "encrypted_content": "Let"});
    let message = json!({"id": msg, "type": "message", "status": "completed", "role": "assistant", "content": [part("Hi")]});
    let call = |status: &str, arguments: &str| json!({"id": fc, "type": "function_call", "status": status, "call_id": "call_6caaaaaa", "name": "f", "arguments": arguments});
    let expected = [
        (
            "output_item.added",
            json!({"output_index": 0, "item": {"id": rs, "type": "reasoning", "summary": [], "status": "in_progress"}}),
        ),
        (
            "reasoning_summary_part.added",
            json!({"item_id": rs, "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        ),
        (
            "reasoning_summary_text.delta",
            json!({"item_id": rs, "output_index": 0, "summary_index": 0, "delta": "Let"}),
        ),
        (
            "reasoning_summary_text.done",
            json!({"item_id": rs, "output_index": 0, "summary_index": 0, "text": "Let"}),
        ),
        (
            "reasoning_summary_part.done",
            json!({"item_id": rs, "output_index": 0, "summary_index": 0, "part": summary}),
        ),
        ("output_item.done", json!({"output_index": 0, "item": reasoning})),
        (
            "output_item.added",
            json!({"output_index": 1, "item": {"id": msg, "type": "message", "status": "in_progress", "role": "assistant", "content": []}}),
        ),
        (
            "content_part.added",
            json!({"item_id": msg, "output_index": 1, "content_index": 0, "part": part("")}),
        ),
        (
            "output_text.delta",
            json!({"item_id": msg, "output_index": 1, "content_index": 0, "delta": "Hi", "logprobs": []}),
        ),
        (
            "output_text.done",
            json!({"item_id": msg, "output_index": 1, "content_index": 0, "text": "Hi", "logprobs": []}),
        ),
        (
            "content_part.done",
            json!({"item_id": msg, "output_index": 1, "content_index": 0, "part": part("Hi")}),
        ),
        ("output_item.done", json!({"output_index": 1, "item": message})),
        ("output_item.added", json!({"output_index": 2, "item": call("in_progress", "")})),
        (
            "function_call_arguments.delta",
            json!({"item_id": fc, "output_index": 2, "delta": "{\"a\":1}"}),
        ),
        (
            "function_call_arguments.done",
            json!({"item_id": fc, "output_index": 2, "name": "f", "arguments": "{\"a\":1}"}),
        ),
        ("output_item.done", json!({"output_index": 2, "item": call("completed", "{\"a\":1}")})),
    ];
    assert_eq!((events[0].0.as_str(), events[1].0.as_str()), ("created", "in_progress"));
    for ((kind, data), (expected_kind, expected)) in events[2..].iter().zip(&expected) {
        assert_eq!((kind.as_str(), data), (*expected_kind, expected));
    }
    assert_eq!(events.len(), 2 + expected.len() + 1);
    let (kind, last) = &events[events.len() - 1];
    assert_eq!(kind, "completed");
    assert_eq!(
        last["response"],
        json!({
            "id": "resp_0000000000000001", "object": "response", "created_at": 1_777_622_400, "completed_at": 1_777_622_400,
            "status": "completed", "error": null, "incomplete_details": null, "model": "m",
            "output": [reasoning, message, call("completed", "{\"a\":1}")],
            "usage": {"input_tokens": 12, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 19},
            "instructions": null, "max_output_tokens": null, "parallel_tool_calls": true, "previous_response_id": null,
            "reasoning": null, "store": null, "temperature": 1, "text": {"format": {"type": "text"}}, "tool_choice": "auto",
            "tools": [], "top_p": 1, "truncation": null, "metadata": {},
        })
    );
    let created = &events[0].1["response"];
    assert_eq!(
        (&created["status"], &created["output"], &created["usage"]),
        (&json!("in_progress"), &json!([]), &json!(null))
    );
}

#[test]
fn length_is_incomplete() {
    let stream = stream(&mut writer(), &[started(), text("a"), done(DoneReason::Length)]);
    let events = events(&stream);
    let (kind, last) = &events[events.len() - 1];
    assert_eq!(kind, "incomplete");
    assert_eq!(last["response"]["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(last["response"]["output"][0]["status"], "incomplete");
}

#[test]
fn failure() {
    for (error, code) in [
        (ApiError::ContextLength, "context_length_exceeded"),
        (ApiError::Busy, "server_is_overloaded"),
        (ApiError::Invalid { message: "x".into() }, "invalid_prompt"),
        (ApiError::Internal { message: "x".into() }, "server_error"),
    ] {
        let text = error.to_string();
        let stream = stream(&mut writer(), &[GenerationEvent::Failed(error)]);
        let events = events(&stream);
        let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["created", "in_progress", "failed"]);
        assert_eq!(events[2].1["response"]["error"], json!({"code": code, "message": text}));
        assert_eq!(events[2].1["response"]["status"], "failed");
    }
}

#[test]
fn keep_alive_sends_events_until_the_first_item() {
    let mut writer = writer();
    let mut environment = Fixed(0);
    let mut out = Vec::new();
    writer.keep_alive(&mut environment, &mut out);
    writer.keep_alive(&mut environment, &mut out);
    let kinds: Vec<String> =
        events(&String::from_utf8_lossy(&out)).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["created", "in_progress", "in_progress"]);
    writer.event(&mut environment, &text("a"), &mut out);
    out.clear();
    writer.keep_alive(&mut environment, &mut out);
    assert_eq!(out, b":\n\n");
}
