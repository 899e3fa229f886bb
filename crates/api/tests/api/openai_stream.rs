//! Chunks of `/v1/chat/completions`, `/v1/completions` and `/v1/audio/transcriptions`

use rullama_api::request::openai::{chat_completions, completions};
use rullama_api::response::ReplyWriter;
use rullama_api::response::openai::{ChatWriter, CompletionsWriter, TranscriptionWriter};
use rullama_api::{ApiError, DoneReason, GenerationEvent};
use serde_json::{Value, json};

use super::support::{
    Fixed, bytes, done, done_of, everything, server_sent, started, stream, text, text_of,
    text_with_logprobs,
};

fn chat(fields: &Value) -> ChatWriter {
    let mut body = json!({"model": "gemma4:e2b", "messages": [{"role": "user", "content": "hi"}]});
    for (name, value) in fields.as_object().expect("fields") {
        body[name] = value.clone();
    }
    ChatWriter::new(&mut Fixed(0), &chat_completions(&bytes(&body)).expect("a chat"))
}

#[test]
fn chat_chunks() {
    let stream =
        stream(&mut chat(&json!({"stream_options": {"include_usage": true}})), &everything());
    let head = r#"data: {"id":"chatcmpl-0000000000000001","object":"chat.completion.chunk","created":1777622400,"model":"gemma4:e2b","choices":["#;
    let expected = [
        r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"index":0,"delta":{"reasoning_content":"Let","reasoning":"Let"},"finish_reason":null}]}"#,
        r#"{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#,
        r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_3caaaaaa","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]}"#,
        r#"{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"],"usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
    ];
    let expected: String = expected.iter().map(|tail| format!("{head}{tail}\n\n")).collect();
    assert_eq!(stream, expected + "data: [DONE]\n\n");
}

#[test]
fn no_usage_unless_requested() {
    let stream = stream(&mut chat(&json!({})), &[started(), text("a"), done(DoneReason::Stop)]);
    assert!(!stream.contains("usage"));
    assert!(stream.contains(r#""finish_reason":"stop""#));
}

#[test]
fn logprobs_are_siblings_of_the_delta() {
    let stream = stream(&mut chat(&json!({})), &[text_with_logprobs()]);
    let chunk = &server_sent(&stream)[1].1["choices"][0];
    assert_eq!(chunk["logprobs"]["content"][0]["top_logprobs"][1]["logprob"], -9999.0);
    assert_eq!(chunk["logprobs"]["refusal"], Value::Null);
}

#[test]
fn several_choices_end_together() {
    let mut writer = chat(&json!({"n": 2, "stream_options": {"include_usage": true}}));
    let stream = stream(
        &mut writer,
        &[
            started(),
            text_of(1, "b"),
            text_of(0, "a"),
            done_of(1, DoneReason::Length),
            text_of(1, "too late"),
            text_of(7, "nobody"),
            done_of(0, DoneReason::Stop),
        ],
    );
    let chunks = server_sent(&stream);
    let seen: Vec<String> = chunks
        .iter()
        .map(|(_, chunk)| {
            format!(
                "{} {} {}",
                chunk["choices"][0]["index"],
                chunk["choices"][0]["delta"]["content"],
                chunk["choices"][0]["finish_reason"]
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            "0 \"\" null",
            "1 \"\" null",
            "1 \"b\" null",
            "0 \"a\" null",
            "1 null \"length\"",
            "0 null \"stop\"",
            "null null null",
            "null null null",
        ]
    );
    assert_eq!(chunks[6].1["usage"]["completion_tokens"], 14);
    assert_eq!(chunks[7].1, "[DONE]");
}

#[test]
fn failure_and_keep_alive() {
    let mut writer = chat(&json!({}));
    let failed = GenerationEvent::Failed(ApiError::Internal { message: "device lost".into() });
    let frames = stream(&mut writer, &[failed, done(DoneReason::Stop)]);
    assert_eq!(
        frames,
        "data: {\"error\":{\"message\":\"device lost\",\"type\":\"api_error\",\"param\":null,\"code\":null}}\n\n"
    );
    let mut out = Vec::new();
    chat(&json!({})).keep_alive(&mut Fixed(0), &mut out);
    assert_eq!(out, b":\n\n");
}

#[test]
fn completion_chunks() {
    let request =
        completions(br#"{"model": "m", "prompt": "x", "stream_options": {"include_usage": true}}"#);
    let mut writer = CompletionsWriter::new(&mut Fixed(0), &request.expect("a prompt"));
    let stream = stream(
        &mut writer,
        &[started(), text("é"), text_with_logprobs(), text_with_logprobs(), done(DoneReason::Stop)],
    );
    let chunks = server_sent(&stream);
    let head = r#"data: {"id":"cmpl-0000000000000001","object":"text_completion","created":1777622400,"model":"m","choices":["#;
    let first = r#"{"text":"é","index":0,"logprobs":null,"finish_reason":null}]}"#;
    assert!(stream.starts_with(&format!("{head}{first}\n\n")), "{stream}");
    let logprobs = |chunk: usize| &chunks[chunk].1["choices"][0]["logprobs"];
    assert_eq!(
        logprobs(1),
        &json!({
            "tokens": ["Hi"], "token_logprobs": [-0.02], "top_logprobs": [{"Hi": -0.02, "Ho": -9999.0}], "text_offset": [0],
        })
    );
    assert_eq!(logprobs(2)["text_offset"], json!([2]));
    assert_eq!(chunks[3].1["choices"][0]["finish_reason"], "stop");
    assert_eq!(chunks[4].1["usage"]["total_tokens"], 19);
    assert_eq!(chunks[5].1, "[DONE]");
}

#[test]
fn transcription_events() {
    let stream = stream(
        &mut TranscriptionWriter::new(),
        &[started(), text("Hello "), text("you"), done(DoneReason::Stop)],
    );
    let expected = concat!(
        "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hello \"}\n\n",
        "data: {\"type\":\"transcript.text.delta\",\"delta\":\"you\"}\n\n",
        "data: {\"type\":\"transcript.text.done\",\"text\":\"Hello you\",\"usage\":{\"type\":\"tokens\",\"input_tokens\":12,\"output_tokens\":7,\"total_tokens\":19}}\n\n",
    );
    assert_eq!(stream, expected);
}
