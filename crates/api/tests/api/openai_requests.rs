//! `/v1/chat/completions`, `/v1/completions`, `/v1/embeddings` and `/v1/audio/transcriptions`

use rullama_api::request::openai::{self, FormField, TranscriptionFormat};
use rullama_api::{
    ApiError, EmbeddingEncoding, Format, GenerationRequest, Grammar, Input, MediaKind, PromptText,
    ToolChoice,
};
use serde_json::{Map, Value, json};

use super::support::{PNG, WAV, bytes, chat, messages};

/// A request with one message and these fields.
fn with(fields: Value) -> Result<GenerationRequest, ApiError> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend::<Map<_, _>>(fields);
    }
    openai::chat_completions(&bytes(&body))
}

fn refused(fields: Value) -> String {
    with(fields).expect_err("it is wrong").to_string()
}

fn tools() -> Value {
    let tool = |name| json!({"type": "function", "function": {"name": name, "parameters": {}}});
    json!([tool("f"), tool("g")])
}

#[test]
fn defaults() {
    let request = with(json!({"service_tier": "auto", "user": "me", "stop": null})).expect("plain");
    assert!(!request.stream && !request.include_usage && request.parallel_tool_calls);
    // Clients expect an error if the context is too short.
    assert!(!request.truncate && !request.shift);
    assert_eq!(request.tool_choice, ToolChoice::Auto);
    assert_eq!(request.options, Default::default());
}

#[test]
fn sampling() {
    let request = with(json!({
        "max_completion_tokens": 5, "max_tokens": 9, "temperature": 0, "top_p": 0.5, "stop": "x", "seed": 7, "n": 2,
        "presence_penalty": 0.1, "frequency_penalty": -0.1, "logit_bias": {"12": -100}, "logprobs": true,
        "top_logprobs": 20, "top_k": 3, "ignore_eos": true, "options": {"top_k": 4, "min_p": 0.1},
        "stream": true, "stream_options": {"include_usage": true}, "keep_alive": -1,
    })).expect("all of it is right");
    let options = &request.options;
    assert_eq!(
        (options.num_predict, options.seed, options.top_k, options.min_p),
        (Some(5), Some(7), Some(3), Some(0.1))
    );
    assert_eq!(
        (options.temperature, options.top_p, options.ignore_eos),
        (Some(0.0), Some(0.5), Some(true))
    );
    assert_eq!(options.stop.as_deref(), Some(&["x".to_owned()][..]));
    assert_eq!(options.logit_bias.as_ref().map(|bias| bias[&12]), Some(-100.0));
    assert_eq!((request.n, request.choices(), request.logprobs), (2, 2, Some(20)));
    assert!(request.stream && request.include_usage);
    let beyond = with(json!({"max_tokens": 10_000_000_000_u64})).expect("as long as it likes");
    assert_eq!(beyond.options.num_predict, Some(i32::MAX));

    assert!(refused(json!({"n": 0})).contains("from 1 to 128"));
    assert!(refused(json!({"max_tokens": 0})).contains("positive"));
    assert!(refused(json!({"top_logprobs": 1})).contains("together with `logprobs`"));
    assert!(refused(json!({"logit_bias": {"12": 101}})).contains("-100 to 100"));
    assert!(refused(json!({"functions": [{"name": "f"}]})).contains("use `tools`"));
    assert!(refused(json!({"chat_template": "{{ x }}"})).contains("own template"));
    assert!(refused(json!({"modalities": ["text", "audio"]})).contains("only text"));
    assert!(with(json!({"modalities": ["text"], "functions": []})).is_ok());
}

#[test]
fn content_parts_keep_their_order() {
    let url = format!("data:image/png;base64,{PNG}");
    let request = with(json!({"messages": [
        {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]},
        {"role": "user", "content": [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
            {"type": "image_url", "image_url": format!("data:;base64,{PNG}")},
            {"type": "text", "text": "b"},
        ]},
    ]})).expect("all kinds of parts");
    let kinds: Vec<MediaKind> = chat(&request).media.iter().map(|media| media.kind).collect();
    assert_eq!(kinds, [MediaKind::Image, MediaKind::Audio, MediaKind::Image]);
    assert_eq!(
        messages(&request),
        json!([
            {"role": "system", "content": "Be\nbrief."},
            {"role": "user", "content": [
                {"type": "text", "text": "a"}, {"type": "image", "media": 0}, {"type": "audio", "media": 1},
                {"type": "image", "media": 2}, {"type": "text", "text": "b"},
            ]},
        ])
    );
    let part = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
    let image = |url: &str| part(json!({"type": "image_url", "image_url": {"url": url}}));
    assert!(refused(image("https://example.com/a.png")).contains("data URL"));
    assert!(refused(image("data:text/plain;base64,aGk=")).contains("data URL of an image"));
    assert!(refused(image(&format!("data:image/png;base64,{WAV}"))).contains("but it is audio"));
    assert!(
        refused(part(json!({"type": "file", "file": {}})))
            .contains("`messages[0].content[0].type`")
    );
    assert!(refused(part(json!({"type": "smell"}))).contains("a text, image or audio part"));
    assert!(refused(json!({"messages": []})).contains("at least one message"));
    assert!(refused(json!({"messages": [{"role": "user"}]})).contains("content` is required"));
}

#[test]
fn calls_and_results() {
    let request = with(json!({"messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
        ]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]}))
    .expect("a round trip");
    let messages = messages(&request);
    assert_eq!(messages[1]["reasoning"], "Hm.");
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], json!({"x": 1}));
    assert_eq!(messages[1]["tool_calls"][1]["function"]["arguments"], json!({}));
    assert_eq!((&messages[2]["name"], &messages[3]["name"]), (&json!("g"), &json!("f")));
    let bad = json!({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}]});
    assert!(refused(bad).contains("tool_calls[0].function.arguments` must be a JSON object"));
}

#[test]
fn tool_choices() {
    let choice = |choice: Value| {
        with(json!({"tools": tools(), "tool_choice": choice})).map(|r| r.tool_choice)
    };
    assert_eq!(choice(json!("auto")), Ok(ToolChoice::Auto));
    assert_eq!(choice(json!("none")), Ok(ToolChoice::None));
    assert_eq!(choice(json!("required")), Ok(ToolChoice::Required));
    let named = json!({"type": "function", "function": {"name": "g"}});
    assert_eq!(choice(named.clone()), Ok(ToolChoice::Named("g".into())));
    let allowed =
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}});
    assert_eq!(
        choice(allowed),
        Ok(ToolChoice::Allowed { names: vec!["g".into()], required: true })
    );
    let unknown = choice(json!({"type": "function", "function": {"name": "h"}}));
    assert_eq!(
        unknown.expect_err("no such tool").to_string(),
        "`tool_choice` names the tool \"h\", which `tools` does not declare"
    );
    assert!(choice(json!("maybe")).is_err());
    assert!(refused(json!({"tool_choice": "required"})).contains("together with `tools`"));
    assert!(refused(json!({"tools": [{"type": "custom", "custom": {}}]})).contains("\"function\""));
    assert!(
        refused(json!({"tools": [{"type": "function", "function": {}}]}))
            .contains("name` is required")
    );
    assert!(!with(json!({"parallel_tool_calls": false})).expect("one call").parallel_tool_calls);
}

#[test]
fn formats() {
    let format =
        |format: Value| with(json!({"response_format": format})).map(|request| request.format);
    let schema = json!({"type": "object"});
    assert_eq!(format(json!({"type": "text"})), Ok(Format::Text));
    assert_eq!(format(json!({"type": "json_object"})), Ok(Format::Json));
    assert_eq!(
        format(json!({"type": "json_object", "schema": schema})),
        Ok(Format::Schema(schema.clone()))
    );
    let nested = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": true}});
    assert_eq!(format(nested), Ok(Format::Schema(schema.clone())));
    assert!(format(json!({"type": "json_schema"})).is_err());
    assert!(format(json!({"type": "xml"})).is_err());
    let grammar = |text: &str| with(json!({"grammar": text})).map(|request| request.format);
    assert_eq!(
        grammar("root ::= \"a\""),
        Ok(Format::Grammar(Grammar::Gbnf("root ::= \"a\"".into())))
    );
    let lark = "%llguidance {}\nstart: \"a\"";
    assert_eq!(grammar(lark), Ok(Format::Grammar(Grammar::Lark(lark.into()))));
    assert_eq!(
        with(json!({"json_schema": schema})).map(|r| r.format),
        Ok(Format::Schema(schema.clone()))
    );
    for (fields, grammar) in [
        (json!({"guided_regex": "a+"}), Grammar::Regex("a+".into())),
        (json!({"guided_choice": ["a", "b"]}), Grammar::Choice(vec!["a".into(), "b".into()])),
        (json!({"guided_grammar": "root ::= \"a\""}), Grammar::Gbnf("root ::= \"a\"".into())),
    ] {
        assert_eq!(with(fields).map(|request| request.format), Ok(Format::Grammar(grammar)));
    }
    let guided = with(json!({"guided_json": schema})).map(|request| request.format);
    assert_eq!(guided, Ok(Format::Schema(schema.clone())));
    assert_eq!(
        refused(json!({"guided_choice": []})),
        "`guided_choice` must be a list of at least one text"
    );
    let two = json!({"grammar": "root ::= \"a\"", "json_schema": schema});
    assert!(refused(two).starts_with("only one of"));
}

#[test]
fn thinking() {
    let think = |fields: Value| with(fields).map(|request| request.think);
    assert_eq!(think(json!({})), Ok(None));
    assert_eq!(think(json!({"reasoning_effort": "none"})), Ok(Some(false)));
    assert_eq!(think(json!({"reasoning_effort": "xhigh"})), Ok(Some(true)));
    assert_eq!(think(json!({"reasoning": {"effort": "low"}})), Ok(Some(true)));
    assert_eq!(think(json!({"think": false})), Ok(Some(false)));
    assert_eq!(think(json!({"chat_template_kwargs": {"enable_thinking": true}})), Ok(Some(true)));
    assert!(think(json!({"reasoning_effort": "huge"})).is_err());
    let budget = |fields: Value| with(fields).map(|request| request.think_budget);
    assert_eq!(budget(json!({"reasoning_effort": "minimal"})), Ok(Some(512)));
    assert_eq!(budget(json!({"reasoning": {"effort": "low"}})), Ok(Some(2048)));
    assert_eq!(budget(json!({"think": "medium"})), Ok(Some(8192)));
    for unlimited in [json!({"reasoning_effort": "high"}), json!({"think": true}), json!({})] {
        assert_eq!(budget(unlimited), Ok(None));
    }
}

#[test]
fn completions() {
    let read = |fields: Value| openai::completions(&bytes(&fields));
    let prompts = |prompt: Value| {
        let Input::Prompt(input) =
            read(json!({"model": "m", "prompt": prompt})).expect("prompts").input
        else {
            panic!("not a prompt")
        };
        input.prompts
    };
    let text = |text: &str| PromptText::Text(text.into());
    assert_eq!(prompts(json!("a")), [text("a")]);
    assert_eq!(prompts(json!(["a", "b"])), [text("a"), text("b")]);
    assert_eq!(prompts(json!([1, 2])), [PromptText::Tokens(vec![1, 2])]);
    assert_eq!(
        prompts(json!([[1], [2, 3]])),
        [PromptText::Tokens(vec![1]), PromptText::Tokens(vec![2, 3])]
    );

    let request = read(json!({
        "model": "m", "prompt": ["a", "b"], "suffix": "s", "echo": true, "n": 2, "logprobs": 5, "max_tokens": 0, "raw": true,
    })).expect("all of it is right");
    assert_eq!((request.choices(), request.logprobs, request.echo), (4, Some(5), true));
    assert_eq!((request.options.num_predict, request.think), (Some(0), Some(false)));

    for wrong in [
        json!({"model": "m"}),
        json!({"model": "m", "prompt": []}),
        json!({"model": "m", "prompt": [1, "a"]}),
        json!({"model": "m", "prompt": [-1]}),
        json!({"model": "m", "prompt": {"a": 1}}),
        json!({"model": "m", "prompt": "a", "logprobs": 6}),
        json!({"model": "m", "prompt": "a", "best_of": 3}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn embeddings() {
    let read = |fields: Value| openai::embeddings(&bytes(&fields));
    let request = read(
        json!({"model": "m", "input": [[1, 2], [3]], "encoding_format": "base64", "dimensions": 8}),
    );
    let request = request.expect("tokens");
    assert_eq!(request.encoding, EmbeddingEncoding::Base64);
    assert_eq!((request.input.len(), request.dimensions), (2, Some(8)));
    for wrong in [json!(""), json!([]), json!(["a", ""]), json!(null)] {
        assert!(read(json!({"model": "m", "input": wrong})).is_err(), "{wrong}");
    }
    assert!(read(json!({"model": "m", "input": "a", "encoding_format": "int8"})).is_err());
}

#[test]
fn transcriptions() {
    let field = |name: &str, bytes: &[u8]| FormField { name: name.into(), bytes: bytes.to_vec() };
    let wav = field("file", b"RIFF\x24\0\0\0WAVEfmt ");
    let with = |fields: &[FormField]| {
        let mut form = vec![wav.clone(), field("model", b"gemma4")];
        form.extend_from_slice(fields);
        openai::transcriptions(form)
    };
    let request =
        with(&[field("language", b"de"), field("stream", b"true"), field("prompt", b"Ortsnamen")]);
    let request = request.expect("speech");
    assert_eq!(request.format, TranscriptionFormat::Json);
    assert!(request.generation.stream);
    assert_eq!(request.generation.think, Some(false));
    assert_eq!(request.generation.options.temperature, Some(0.0));
    assert_eq!(chat(&request.generation).media[0].kind, MediaKind::Audio);
    let instruction = messages(&request.generation)[0]["content"][0]["text"].to_string();
    assert!(instruction.contains("(de)") && instruction.contains("Ortsnamen"), "{instruction}");

    assert_eq!(
        with(&[field("response_format", b"text")]).map(|r| r.format),
        Ok(TranscriptionFormat::Text)
    );
    for wrong in [
        field("response_format", b"srt"),
        field("temperature", b"warm"),
        field("stream", b"maybe"),
        field("model", b""),
        field("language", b"\xff"),
        field("timestamp_granularities[]", b"word"),
        field("file", b"not audio"),
    ] {
        assert!(with(std::slice::from_ref(&wrong)).is_err(), "{wrong:?}");
    }
    assert!(openai::transcriptions(vec![field("model", b"m")]).is_err());
}
