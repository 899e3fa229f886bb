//! Whatever a client sends, a parser returns a request or an error.

use proptest::prelude::*;
use rullama_api::request::{anthropic, llamacpp, ollama, openai};
use rullama_api::{ApiError, Dialect, KeepAlive, MediaKind, Options, short_name};
use serde_json::{Map, Value, json};

use super::entry::read_all;
use super::support::{PNG, WAV, bytes, chat};

/// JSON with the names and values that occur in requests.
fn json_value() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 44] = [
        "model",
        "messages",
        "role",
        "content",
        "type",
        "text",
        "images",
        "tools",
        "function",
        "name",
        "arguments",
        "tool_calls",
        "tool_call_id",
        "id",
        "input",
        "call_id",
        "output",
        "prompt",
        "options",
        "stop",
        "format",
        "think",
        "thinking",
        "tool_choice",
        "response_format",
        "json_schema",
        "schema",
        "logprobs",
        "top_logprobs",
        "n",
        "max_tokens",
        "keep_alive",
        "stream",
        "image_url",
        "url",
        "source",
        "data",
        "tool_use_id",
        "system",
        "input_schema",
        "parameters",
        "summary",
        "lora",
        "reasoning",
    ];
    let texts = [
        "",
        "m",
        "user",
        "assistant",
        "tool",
        "system",
        "developer",
        "text",
        "function",
        "tool_use",
        "tool_result",
        "image",
        "image_url",
        "input_audio",
        "function_call",
        "function_call_output",
        "reasoning",
        "message",
        "auto",
        "required",
        "json",
        "json_schema",
        "base64",
        "5m",
        "{}",
        "{\"a\":1}",
        PNG,
        WAV,
    ];
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let leaf = prop_oneof![
        8 => prop::sample::select(texts).prop_map(Value::from),
        1 => "\\PC{0,4}".prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        2 => (0..4).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&NAMES[..]), inner), 0..7).prop_map(
                |fields| {
                    fields
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect::<Map<_, _>>()
                        .into()
                }
            ),
        ]
    })
}

/// Messages that are mostly valid.
fn message() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(vec!["system", "user", "assistant", "tool"]);
    (role, json_value(), json_value(), json_value()).prop_map(|(role, content, calls, images)| {
        json!({"role": role, "content": content, "tool_calls": calls, "images": images})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(body in prop::collection::vec(any::<u8>(), 0..64)) {
        read_all(&body);
    }

    #[test]
    fn any_json(value in json_value(), message in prop::collection::vec(message(), 0..4)) {
        let mut body = value;
        if let Some(fields) = body.as_object_mut() {
            fields.insert("model".into(), "m".into());
            fields.entry("max_tokens").or_insert(1.into());
            fields.entry("input").or_insert("hi".into());
            if !message.is_empty() {
                fields.insert("messages".into(), message.into());
            }
        }
        for error in read_all(body.to_string().as_bytes()) {
            // A client's mistake is never a server error, which clients would retry.
            prop_assert!((400..500).contains(&error.status()), "{error:?}");
            for dialect in [Dialect::Ollama, Dialect::OpenAi, Dialect::Anthropic, Dialect::LlamaCpp] {
                prop_assert!(error.reply(dialect, "req_1").body.is_object());
            }
        }
    }

    #[test]
    fn any_text(text in "\\PC{0,20}", bytes in prop::collection::vec(any::<u8>(), 0..16), value in json_value()) {
        KeepAlive::parse(&text);
        MediaKind::of(&bytes);
        _ = Options::from_value(value);
        if let Ok(short) = short_name(&text) {
            prop_assert_eq!(short_name(&short), Ok(short.clone()), "short names stay as they are");
        }
    }

    #[test]
    fn durations_in_seconds(seconds in 0_u32..1_000_000) {
        let expected = Some(KeepAlive::For(std::time::Duration::from_secs(seconds.into())));
        prop_assert_eq!(KeepAlive::parse(&seconds.to_string()), expected);
        prop_assert_eq!(KeepAlive::parse(&format!("{seconds}s")), expected);
        let parts = format!("{}h{}m{}s", seconds / 3600, seconds / 60 % 60, seconds % 60);
        prop_assert_eq!(KeepAlive::parse(&parts), expected);
    }
}

/// Seeds of the fuzzer; each is valid for at least one parser.
#[test]
fn every_seed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/api");
    let count = read_all(b"").len();
    let mut seeds = 0;
    for file in std::fs::read_dir(folder).expect("the seeds of the fuzzer") {
        let body = std::fs::read(file.expect("a file").path()).expect("a readable file");
        assert!(read_all(&body).len() < count);
        seeds += 1;
    }
    assert!(seeds >= 8);
}

#[test]
fn tool_results_are_required_before_generation() {
    let openai_call =
        json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [openai_call]});
    let block = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let anthropic_body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "assistant", "content": [block]}]});
    let body = json!({"model": "m", "messages": [message]});
    let input = json!([{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]);
    let responses_body = json!({"model": "m", "input": input});
    let refused = Err(ApiError::UnansweredCalls);
    assert_eq!(ollama::chat(&bytes(&body)), refused);
    assert_eq!(openai::chat_completions(&bytes(&body)), refused);
    assert_eq!(
        openai::responses(&bytes(&responses_body)).map(|request| request.generation),
        refused
    );
    assert_eq!(anthropic::messages(&bytes(&anthropic_body)), refused);
    // Counting and rendering do not generate.
    assert!(anthropic::count_tokens(&bytes(&anthropic_body)).is_ok());
    assert!(llamacpp::apply_template(&bytes(&body)).is_ok());
}

#[test]
fn deep_nesting_is_an_error() {
    let body = "[".repeat(100_000);
    assert!(read_all(body.as_bytes()).iter().any(|error| matches!(error, ApiError::Json { .. })));
}

#[test]
fn numbers_of_calls_and_tools_are_limited() {
    let call = json!({"function": {"name": "f", "arguments": {}}});
    let body =
        json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": vec![call; 1025]}]});
    assert!(ollama::chat(body.to_string().as_bytes()).is_err());
    let tool = json!({"type": "function", "function": {"name": "f"}});
    let with = |count| {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": vec![tool.clone(); count]});
        ollama::chat(body.to_string().as_bytes())
    };
    assert!(with(1025).is_err());
    assert_eq!(with(1024).map(|request| chat(&request).conversation.tools.len()), Ok(1024));
}
