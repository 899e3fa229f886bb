//! Events of `/v1/messages`

use rullama_api::request::anthropic::messages;
use rullama_api::response::ReplyWriter;
use rullama_api::response::anthropic::{MessagesWriter, token_count};
use rullama_api::{ApiError, DoneReason, GenerationEvent, GenerationRequest};
use serde_json::json;

use super::support::{Fixed, call, done, everything, server_sent, started, stream, text};

pub(crate) fn request() -> GenerationRequest {
    let body =
        br#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}"#;
    messages(body).expect("a request")
}

fn writer() -> MessagesWriter {
    MessagesWriter::new(&mut Fixed(0), &request())
}

#[test]
fn all_kinds_of_blocks() {
    let frames = [
        (
            "message_start",
            r#"{"type":"message_start","message":{"id":"msg_0000000000000001","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,"output_tokens":0}}}"#,
        ),
        (
            "content_block_start",
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let"}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":""}}"#,
        ),
        ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
        (
            "content_block_start",
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}"#,
        ),
        ("content_block_stop", r#"{"type":"content_block_stop","index":1}"#),
        (
            "content_block_start",
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_0000000000000065","name":"f","input":{}}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
        ),
        ("content_block_stop", r#"{"type":"content_block_stop","index":2}"#),
        (
            "message_delta",
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":4,"cache_read_input_tokens":8,"output_tokens":7}}"#,
        ),
        ("message_stop", r#"{"type":"message_stop"}"#),
    ];
    let expected: String =
        frames.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect();
    assert_eq!(stream(&mut writer(), &everything()), expected);
}

#[test]
fn stop_reasons() {
    let reason = |events: &[GenerationEvent]| {
        let stream = stream(&mut writer(), events);
        let frames = server_sent(&stream);
        frames[frames.len() - 2].1["delta"].clone()
    };
    let stop = |reason: DoneReason| [started(), text("a"), done(reason)];
    assert_eq!(reason(&stop(DoneReason::Stop))["stop_reason"], "end_turn");
    assert_eq!(reason(&stop(DoneReason::Length))["stop_reason"], "max_tokens");
    let sequence = reason(&stop(DoneReason::StopSequence("END".into())));
    assert_eq!(sequence, json!({"stop_reason": "stop_sequence", "stop_sequence": "END"}));
    let calls = [call("f", &json!({})), done(DoneReason::Stop)];
    assert_eq!(reason(&calls)["stop_reason"], "tool_use");
}

#[test]
fn no_arguments_are_an_empty_object() {
    let stream = stream(&mut writer(), &[call("f", &json!({}))]);
    assert!(stream.contains(r#""partial_json":"{}""#));
}

#[test]
fn failure_and_keep_alive() {
    let failed = GenerationEvent::Failed(ApiError::Busy);
    let stream = stream(&mut writer(), &[started(), failed, text("more")]);
    let last = server_sent(&stream).pop().expect("frames");
    assert_eq!(last.0.as_deref(), Some("error"));
    assert_eq!(last.1["error"]["type"], "overloaded_error");
    let mut out = Vec::new();
    writer().keep_alive(&mut Fixed(0), &mut out);
    assert_eq!(out, b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

#[test]
fn counted_tokens() {
    assert_eq!(token_count(5), json!({"input_tokens": 5}));
}
