//! `/api/…`

use std::time::Duration;

use rullama_api::request::ollama;
use rullama_api::{
    ApiError, Dialect, Format, GenerationRequest, Input, KeepAlive, MediaKind, Prefill,
    PromptInput, PromptText,
};
use serde_json::{Value, json};

use super::support::{PNG, WAV, bytes, chat, messages};

fn read(body: &Value) -> Result<GenerationRequest, ApiError> {
    ollama::chat(&bytes(body))
}

fn refused(body: &Value) -> String {
    read(body).expect_err("it is wrong").to_string()
}

#[test]
fn defaults() {
    let body = json!({"model": "gemma4", "messages": [{"role": "User", "content": "hi"}]});
    let request = read(&body).expect("a plain request");
    assert_eq!(request.dialect, Dialect::Ollama);
    assert_eq!(request.model, "gemma4");
    assert!(request.stream && request.truncate && request.shift);
    assert_eq!(
        (request.think, request.keep_alive, request.logprobs, request.n),
        (None, None, None, 1)
    );
    assert_eq!(request.format, Format::Text);
    assert_eq!(messages(&request), json!([{"role": "user", "content": "hi"}]));
}

#[test]
fn everything() {
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let request = read(&json!({
        "model": "gemma4:e2b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is this?", "images": [PNG, WAV]},
            {"role": "assistant", "content": "", "thinking": "Look.", "tool_calls": [
                {"function": {"name": "look", "arguments": {"z": 1, "a": 2}}},
                {"function": {"name": "hear", "arguments": {}}},
            ]},
            {"role": "tool", "tool_name": "hear", "content": "a tone"},
            {"role": "tool", "content": "a dot"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "d", "parameters": schema}}],
        "format": schema,
        "options": {"temperature": 0.5, "num_ctx": 4096, "stop": ["x"], "unknown": {}},
        "stream": false, "keep_alive": "1h", "think": "high", "truncate": false, "shift": false,
        "logprobs": true, "top_logprobs": 3, "_debug_render_only": true, "lora": [{"id": 1, "scale": 0.5}],
    })).expect("all of it is right");
    assert!(!request.stream && !request.truncate && !request.shift && request.debug_render_only);
    assert_eq!(request.keep_alive, Some(KeepAlive::For(Duration::from_secs(3600))));
    assert_eq!((request.think, request.logprobs), (Some(true), Some(3)));
    assert_eq!(request.format, Format::Schema(schema.clone()));
    assert_eq!((request.options.temperature, request.options.num_ctx), (Some(0.5), Some(4096)));
    assert_eq!(request.lora.as_deref().map(|lora| (lora[0].id, lora[0].scale)), Some((1, 0.5)));
    assert_eq!(request.tools()[0].function["parameters"].to_string(), schema.to_string());

    let media: Vec<MediaKind> = chat(&request).media.iter().map(|media| media.kind).collect();
    assert_eq!(media, [MediaKind::Image, MediaKind::Audio]);
    let messages = messages(&request);
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "image", "media": 0}, {"type": "audio", "media": 1}, {"type": "text", "text": "What is this?"},
        ])
    );
    assert_eq!(messages[2]["reasoning"], "Look.");
    assert_eq!(
        messages[2]["tool_calls"][0]["function"]["arguments"].to_string(),
        r#"{"z":1,"a":2}"#
    );
    // Results are matched to calls by name, then by order.
    assert_eq!(messages[3]["tool_call_id"], messages[2]["tool_calls"][1]["id"]);
    assert_eq!(messages[4]["tool_call_id"], messages[2]["tool_calls"][0]["id"]);
    assert_eq!(messages[4]["name"], "look");
}

#[test]
fn a_request_without_messages_loads_or_unloads() {
    let request = read(&json!({"model": "m", "messages": []})).expect("a load");
    assert!(request.input == Input::Load && !request.is_unload());
    let request = read(&json!({"model": "m", "keep_alive": 0})).expect("an unload");
    assert!(request.is_unload());
    let request =
        ollama::generate(br#"{"model": "m", "prompt": "", "keep_alive": "0"}"#).expect("an unload");
    assert!(request.is_unload());
}

#[test]
fn a_trailing_assistant_message_is_continued() {
    let request = read(&json!({"model": "m", "messages": [
        {"role": "user", "content": "Count."}, {"role": "assistant", "content": "1, 2, ", "thinking": "Easy."},
    ]})).expect("a prefill");
    let prefill = Prefill { thinking: Some("Easy.".into()), text: "1, 2, ".into() };
    assert_eq!(chat(&request).prefill, Some(prefill));
    assert_eq!(chat(&request).conversation.messages.len(), 1);
}

#[test]
fn formats() {
    let format = |format: Value| read(&json!({"model": "m", "format": format})).map(|r| r.format);
    assert_eq!(format(json!(null)), Ok(Format::Text));
    assert_eq!(format(json!("")), Ok(Format::Text));
    assert_eq!(format(json!("json")), Ok(Format::Json));
    let text = r#"invalid format: "xml"; expected "json" or a valid JSON Schema object"#;
    assert_eq!(format(json!("xml")).map_err(|e| e.to_string()), Err(text.into()));
}

#[test]
fn refusals() {
    assert_eq!(ollama::chat(b" \n").expect_err("empty").to_string(), "missing request body");
    assert!(matches!(ollama::chat(b"{"), Err(ApiError::Json { .. })));
    assert_eq!(
        ollama::chat(b"[]").expect_err("a list").to_string(),
        "`body` must be a JSON object"
    );
    assert_eq!(refused(&json!({})), "model is required");
    assert_eq!(refused(&json!({"model": ""})), "model is required");
    assert_eq!(refused(&json!({"model": 1})), "`model` must be a string");
    let options = json!({"model": "m", "options": {"num_ctx": "8k"}});
    assert_eq!(refused(&options), r#"option "num_ctx" must be of type integer"#);
    let think = json!({"model": "m", "think": "hard"});
    assert!(refused(&think).starts_with(r#"invalid think value: "hard""#));
    let with = |message: Value| json!({"model": "m", "messages": [message]});
    let role = with(json!({"role": "robot", "content": ""}));
    assert!(refused(&role).starts_with("`messages[0].role` must be"));
    assert_eq!(refused(&with(json!({"content": "x"}))), "`messages[0].role` is required");
    let image = with(json!({"role": "user", "images": ["%%%"]}));
    assert_eq!(refused(&image), "`messages[0].images[0]` must be base64");
    let image = with(json!({"role": "user", "images": ["aGVsbG8="]}));
    assert!(refused(&image).starts_with("`messages[0].images[0]` must be an image (PNG"));
    let image = with(json!({"role": "system", "content": "x", "images": [PNG]}));
    assert!(refused(&image).contains("not in a message of the system"));
    assert!(refused(&with(json!({"role": "tool", "content": "x"}))).contains("without a call"));
    let call =
        json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]});
    assert!(refused(&with(call)).ends_with("arguments` must be a JSON object"));
    assert!(
        refused(&json!({"model": "m", "top_logprobs": 2})).contains("together with `logprobs`")
    );
    assert!(
        refused(&json!({"model": "m", "logprobs": true, "top_logprobs": 21}))
            .contains("from 0 to 20")
    );
}

#[test]
fn generate() {
    let request = ollama::generate(&bytes(&json!({
        "model": "m", "prompt": "Hello", "suffix": "!", "system": "s", "context": [1, 2], "images": [PNG],
    }))).expect("a prompt");
    let Input::Prompt(prompt) = request.input else { panic!("not a prompt") };
    assert_eq!(prompt.prompts, [PromptText::Text("Hello".into())]);
    assert_eq!(prompt.to_chat(&prompt.prompts[0]), None, "a gap to fill has no template");
    let whole = PromptInput { suffix: None, ..prompt.clone() };
    let chat = whole.to_chat(&prompt.prompts[0]).expect("a chat");
    assert_eq!(chat.media.len(), 1);
    let roles: Vec<&str> = chat.conversation.messages.iter().map(|m| m.role.as_str()).collect();
    assert_eq!(roles, ["system", "user"]);
    let raw = PromptInput { raw: true, ..whole };
    assert_eq!(raw.to_chat(&prompt.prompts[0]), None);
    assert_eq!((prompt.suffix.as_deref(), prompt.system.as_deref()), (Some("!"), Some("s")));
    assert_eq!((prompt.context, prompt.media.len(), prompt.raw), (vec![1, 2], 1, false));

    let refused =
        |body: Value| ollama::generate(&bytes(&body)).expect_err("it is wrong").to_string();
    let text = "raw mode does not support template, system, or context";
    assert_eq!(refused(json!({"model": "m", "prompt": "x", "raw": true, "system": "s"})), text);
    assert!(
        refused(json!({"model": "m", "prompt": "x", "template": "{{ . }}"})).contains("`template`")
    );
    assert!(refused(json!({"model": "m", "prompt": "x", "context": ["a"]})).contains("token ids"));
}

#[test]
fn embeddings() {
    let read = |body: Value| ollama::embed(&bytes(&body));
    let one = read(json!({"model": "m", "input": "a", "dimensions": 64})).expect("one text");
    assert_eq!(one.input, [PromptText::Text("a".into())]);
    assert!(one.truncate && one.normalize);
    assert_eq!(one.dimensions, Some(64));
    let two =
        read(json!({"model": "m", "input": ["a", "b"], "truncate": false})).expect("two texts");
    assert!(two.input.len() == 2 && !two.truncate);
    for nothing in [
        json!({"model": "m"}),
        json!({"model": "m", "input": ""}),
        json!({"model": "m", "input": []}),
    ] {
        assert!(read(nothing).expect("no text").input.is_empty());
    }
    assert!(read(json!({"model": "m", "input": 5})).is_err());
    let old = ollama::embeddings(br#"{"model": "m", "prompt": "a"}"#).expect("one prompt");
    assert!(!old.normalize && old.input.len() == 1);
}

#[test]
fn management() {
    assert_eq!(ollama::show(br#"{"name": "m", "verbose": true}"#).expect("old name").model, "m");
    assert_eq!(ollama::show(br#"{"name": "old", "model": "new"}"#).expect("both").model, "new");
    assert_eq!(ollama::delete(b"{}"), Err(ApiError::ModelRequired));
    let pull =
        ollama::pull(br#"{"model": "m", "insecure": true, "stream": false}"#).expect("a pull");
    assert!(pull.insecure && !pull.stream);
    let copy = ollama::copy(br#"{"source": "a", "destination": "b"}"#).expect("a copy");
    assert_eq!((copy.source.as_str(), copy.destination.as_str()), ("a", "b"));
    assert!(ollama::copy(br#"{"source": "a"}"#).is_err());

    let digest = format!("sha256:{}", "0".repeat(64));
    let create = |body: Value| ollama::create(&bytes(&body));
    let made = create(json!({
        "model": "new", "from": "base", "adapters": {"a.gguf": digest}, "system": "s", "license": "MIT",
        "parameters": {"stop": ["x"], "top_k": 3}, "messages": [{"role": "user", "content": "hi"}],
    })).expect("a model from a base");
    assert_eq!(made.adapters["a.gguf"], digest);
    assert_eq!(made.license, ["MIT"]);
    assert_eq!(made.parameters["top_k"], 3);
    assert_eq!(made.messages.len(), 1);
    assert!(create(json!({"model": "m", "quantize": "q4_0"})).is_err());
    assert!(create(json!({"model": "m", "files": {"a.safetensors": digest}})).is_err());
    assert!(create(json!({"model": "m", "files": {"a.gguf": "sha256:../../etc"}})).is_err());
    assert!(create(json!({"model": "m", "parameters": {"top_k": "x"}})).is_err());
    let image = json!({"model": "m", "messages": [{"role": "user", "images": [PNG]}]});
    assert!(create(image).is_err());
}
