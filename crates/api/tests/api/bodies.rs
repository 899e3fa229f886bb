//! Responses without streaming.

use rullama_api::request::openai::{chat_completions, completions};
use rullama_api::response::Reply;
use rullama_api::response::anthropic::MessagesWriter;
use rullama_api::response::embeddings::{OllamaEmbedding, OllamaEmbeddings, OpenAiEmbeddings};
use rullama_api::response::ollama::OllamaWriter;
use rullama_api::response::openai::{
    ChatWriter, CompletionsWriter, ResponsesWriter, TranscriptionWriter,
};
use rullama_api::{
    ApiError, DoneReason, EmbeddingEncoding, GenerationEvent, GenerationRequest, request,
};
use serde_json::{json, to_string};

use super::support::{
    Fixed, body, done, done_of, everything, started, text, text_of, text_with_logprobs, thinking,
};
use super::{anthropic_stream, responses_stream};

fn chat_request() -> GenerationRequest {
    chat_completions(br#"{"model": "gemma4:e2b", "messages": [{"role": "user", "content": "hi"}]}"#)
        .expect("a chat")
}

#[test]
fn chat_completion() {
    let request = chat_request();
    let body = body(&mut ChatWriter::new(&mut Fixed(0), &request), &request, &everything());
    let expected = concat!(
        r#"{"id":"chatcmpl-0000000000000001","object":"chat.completion","created":1777622400,"model":"gemma4:e2b","system_fingerprint":"fp_rullama","#,
        r#""choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"reasoning_content":"Let","reasoning":"Let","tool_calls":["#,
        r#"{"id":"call_3caaaaaa","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"#,
        r#""usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
    );
    assert_eq!(body.to_string(), expected);
}

#[test]
fn completion_with_several_choices() {
    let request = completions(br#"{"model": "m", "prompt": ["a", "b"]}"#).expect("two prompts");
    let events = [
        started(),
        text_of(1, "y"),
        text_of(0, "x"),
        done_of(0, DoneReason::Stop),
        done_of(1, DoneReason::Length),
    ];
    let body = body(&mut CompletionsWriter::new(&mut Fixed(0), &request), &request, &events);
    assert_eq!(
        body["choices"],
        json!([
            {"text": "x", "index": 0, "logprobs": null, "finish_reason": "stop"},
            {"text": "y", "index": 1, "logprobs": null, "finish_reason": "length"},
        ])
    );
    assert_eq!(body["usage"]["completion_tokens"], 14);
}

#[test]
fn ollama() {
    let request = request::ollama::chat(
        br#"{"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": false}"#,
    );
    let request = request.expect("a chat");
    let body = body(&mut OllamaWriter::chat(&request), &request, &everything());
    let expected = concat!(
        r#"{"model":"m","created_at":"2026-05-01T08:00:00Z","message":{"role":"assistant","content":"Hi","thinking":"Let","tool_calls":"#,
        r#"[{"id":"call_3caaaaaa","function":{"index":0,"name":"f","arguments":{"a":1}}}]},"done":true,"done_reason":"stop","#,
        r#""total_duration":9,"load_duration":1,"prompt_eval_count":12,"prompt_eval_duration":3,"eval_count":7,"eval_duration":5}"#,
    );
    assert_eq!(body.to_string(), expected);
}

#[test]
fn responses() {
    let request = responses_stream::request();
    let mut writer = ResponsesWriter::new(&mut Fixed(0), &request);
    let whole = body(&mut writer, &request.generation, &everything());
    assert_eq!(
        (&whole["status"], &whole["completed_at"]),
        (&json!("completed"), &json!(1_777_622_400))
    );
    let kinds: Vec<&str> = whole["output"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(whole["usage"]["output_tokens_details"]["reasoning_tokens"], 3);

    let events = [started(), thinking("a"), text_with_logprobs(), done(DoneReason::Length)];
    let mut writer = ResponsesWriter::new(&mut Fixed(0), &request);
    let cut = body(&mut writer, &request.generation, &events);
    assert_eq!((&cut["status"], &cut["completed_at"]), (&json!("incomplete"), &json!(null)));
    assert_eq!(cut["output"][1]["status"], "incomplete");
    assert_eq!(cut["output"][1]["content"][0]["logprobs"][0]["token"], "Hi");
}

#[test]
fn anthropic() {
    let request = anthropic_stream::request();
    let body = body(&mut MessagesWriter::new(&mut Fixed(0), &request), &request, &everything());
    let expected = concat!(
        r#"{"id":"msg_0000000000000001","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Let","signature":""},"#,
        r#"{"type":"text","text":"Hi"},{"type":"tool_use","id":"toolu_0000000000000065","name":"f","input":{"a":1}}],"stop_reason":"tool_use","stop_sequence":null,"#,
        r#""usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,"output_tokens":7}}"#,
    );
    assert_eq!(body.to_string(), expected);
}

#[test]
fn transcription() {
    let request = chat_request();
    let body = body(
        &mut TranscriptionWriter::new(),
        &request,
        &[started(), text("Hello"), done(DoneReason::Stop)],
    );
    assert_eq!(body["text"], "Hello");
}

#[test]
fn a_failure_is_an_error() {
    let mut reply = Reply::new(&chat_request());
    assert_eq!(reply.push(text("a")), Ok(()));
    assert_eq!(reply.push(GenerationEvent::Failed(ApiError::Busy)), Err(ApiError::Busy));
    assert!(!reply.is_complete());
}

#[test]
fn vectors() {
    let vectors = vec![vec![0.1_f32, -1.0], vec![2.0, 0.5]];
    let second = std::time::Duration::from_secs(1);
    let ollama = OllamaEmbeddings::new("m", vectors.clone(), 3, second, second * 2);
    assert_eq!(
        to_string(&ollama).expect("JSON"),
        r#"{"model":"m","embeddings":[[0.1,-1.0],[2.0,0.5]],"total_duration":2000000000,"load_duration":1000000000,"prompt_eval_count":3}"#,
    );
    assert_eq!(
        to_string(&OllamaEmbedding { embedding: vec![] }).expect("JSON"),
        r#"{"embedding":[]}"#
    );
    let floats = OpenAiEmbeddings::new("m", vectors.clone(), EmbeddingEncoding::Float, 3);
    assert_eq!(
        to_string(&floats).expect("JSON"),
        r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-1.0]},{"object":"embedding","index":1,"embedding":[2.0,0.5]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}}"#,
    );
    let base64 = OpenAiEmbeddings::new("m", vectors, EmbeddingEncoding::Base64, 3);
    // 2.0 and 0.5 as little-endian f32.
    assert!(to_string(&base64).expect("JSON").contains(r#""embedding":"AAAAQAAAAD8=""#));
}
