//! Lines of `/api/chat` and `/api/generate`

use rullama_api::request::ollama;
use rullama_api::response::ReplyWriter;
use rullama_api::response::ollama::OllamaWriter;
use rullama_api::{ApiError, DoneReason, GenerationEvent};
use serde_json::json;

use super::support::{Fixed, done, everything, started, stream, text, text_with_logprobs};

fn chat() -> OllamaWriter {
    let body = br#"{"model": "gemma4:e2b", "messages": [{"role": "user", "content": "hi"}]}"#;
    OllamaWriter::chat(&ollama::chat(body).expect("a chat"))
}

fn generate(body: &[u8]) -> OllamaWriter {
    OllamaWriter::generate(&ollama::generate(body).expect("a prompt"))
}

#[test]
fn chat_lines() {
    let lines = stream(&mut chat(), &everything());
    let expected = concat!(
        r#"{"model":"gemma4:e2b","created_at":"2026-05-01T08:00:00Z","message":{"role":"assistant","content":"","thinking":"Let"},"done":false}"#,
        "\n",
        r#"{"model":"gemma4:e2b","created_at":"2026-05-01T08:00:00Z","message":{"role":"assistant","content":"Hi"},"done":false}"#,
        "\n",
        r#"{"model":"gemma4:e2b","created_at":"2026-05-01T08:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_3caaaaaa","function":{"index":0,"name":"f","arguments":{"a":1}}}]},"done":false}"#,
        "\n",
        r#"{"model":"gemma4:e2b","created_at":"2026-05-01T08:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9,"load_duration":1,"prompt_eval_count":12,"prompt_eval_duration":3,"eval_count":7,"eval_duration":5}"#,
        "\n",
    );
    assert_eq!(lines, expected);
}

#[test]
fn logprobs_and_length() {
    let lines = stream(&mut chat(), &[started(), text_with_logprobs(), done(DoneReason::Length)]);
    let (first, last) = lines.split_once('\n').expect("two lines");
    assert!(first.ends_with(concat!(
        r#""message":{"role":"assistant","content":"Hi"},"done":false,"logprobs":[{"token":"Hi","logprob":-0.02,"bytes":[72,105],"#,
        r#""top_logprobs":[{"token":"Hi","logprob":-0.02,"bytes":[72,105]},{"token":"Ho","logprob":-9999.0,"bytes":[72,111]}]}]}"#,
    )), "{first}");
    assert!(last.contains(r#""done_reason":"length""#));
}

#[test]
fn generate_lines() {
    let events = [started(), text("Hi"), done(DoneReason::Stop)];
    let lines = stream(&mut generate(br#"{"model": "m", "prompt": "x"}"#), &events);
    let expected = concat!(
        r#"{"model":"m","created_at":"2026-05-01T08:00:00Z","response":"Hi","done":false,"context":[]}"#,
        "\n",
        r#"{"model":"m","created_at":"2026-05-01T08:00:00Z","response":"","done":true,"context":[2,4,6],"done_reason":"stop","total_duration":9,"load_duration":1,"prompt_eval_count":12,"prompt_eval_duration":3,"eval_count":7,"eval_duration":5}"#,
        "\n",
    );
    assert_eq!(lines, expected);
    let raw = stream(&mut generate(br#"{"model": "m", "prompt": "x", "raw": true}"#), &events);
    assert!(raw.lines().all(|line| line.contains(r#""context":[]"#)), "{raw}");
}

#[test]
fn no_line_without_new_content() {
    let mut writer = chat();
    assert_eq!(stream(&mut writer, &[started(), text("")]), "");
    let mut out = Vec::new();
    writer.keep_alive(&mut Fixed(0), &mut out);
    assert!(out.is_empty(), "a blank line makes ollama-python fail");
}

#[test]
fn failure_ends_the_stream() {
    let failed = GenerationEvent::Failed(ApiError::Internal { message: "device lost".into() });
    let mut writer = chat();
    let lines = stream(&mut writer, &[started(), failed, text("more"), done(DoneReason::Stop)]);
    assert_eq!(lines, "{\"error\":\"device lost\"}\n");
    assert!(writer.is_finished());
}

#[test]
fn load_unload_and_rendering() {
    let mut environment = Fixed(0);
    assert_eq!(
        chat().loaded(&mut environment, false),
        json!({"model": "gemma4:e2b", "created_at": "2026-05-01T08:00:00Z",
            "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "load"}),
    );
    let unloaded = generate(br#"{"model": "m", "keep_alive": 0}"#).loaded(&mut environment, true);
    assert_eq!((&unloaded["done_reason"], &unloaded["response"]), (&json!("unload"), &json!("")));
    let rendered = chat().rendered(&mut environment, "<bos>", 2);
    assert_eq!(rendered["_debug_info"], json!({"rendered_template": "<bos>", "image_count": 2}));
}
