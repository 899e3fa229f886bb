//! Replies constrained to JSON, by random models.

use std::rc::Rc;

use pollster::block_on;
use rullama_chat::{Conversation, Message, Output, Tool};
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model, RuntimeError,
    generate::{
        CallFormat, ChatOptions, ConstraintError, Event, Finish, Format, Generation, JsonFormat,
        Prompt, TextFormat, prompt_of,
    },
    options::SamplingOptions,
    session::SessionOptions,
    vocabulary::tokenizer,
};
use rullama_source::MemorySource;
use rullama_testkit::real_vocabulary;
use rullama_tokenizer::Special;
use serde_json::{Value, json};

use crate::golden::model;

/// Thinking, text and finish reason.
struct Answer {
    thought: String,
    text: String,
    finish: Finish,
    tokens: usize,
}

fn answer(model: &Model, prompt: &Prompt, format: &JsonFormat, seed: u32, limit: i32) -> Answer {
    // No filters: every allowed token can be sampled.
    let options =
        SamplingOptions { num_predict: limit, top_k: 0, top_p: 1.0, ..Default::default() };
    let mut session = model.session(&SessionOptions::default()).expect("a session");
    let form = format.constraint();
    let mut generation =
        Generation::constrained(&mut session, model, prompt, &options, seed, form).expect("begins");
    let (mut thought, mut text) = (String::new(), String::new());
    while let Some(event) = block_on(generation.next()).expect("an event") {
        match event {
            Event::Thinking(piece) => thought += &piece,
            Event::Text(piece) => text += &piece,
            Event::Done(done) => {
                return Answer { thought, text, finish: done.finish, tokens: done.answer_tokens };
            }
            other => panic!("unexpected event {other:?}"),
        }
    }
    panic!("a reply ends");
}

fn chat(model: &Model, thinking: bool) -> Prompt {
    let messages = vec![Message::new("user", "hello")];
    let conversation = Conversation { messages, thinking, ..Conversation::default() };
    prompt_of(model, &conversation, ChatOptions::default()).expect("a prompt")
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["cat", "dog"] },
            "age": { "type": "integer", "minimum": 0, "maximum": 30 },
            "tame": { "$ref": "#/$defs/truth" },
        },
        "required": ["kind", "age", "tame"],
        "additionalProperties": false,
        "$defs": { "truth": { "type": "boolean" } },
    })
}

#[test]
fn replies_match_the_schema() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let format = JsonFormat::schema(model.tokenizer().expect("words"), schema()).expect("a format");
    for (seed, prompt) in
        (0..).zip([chat(&model, false), Prompt::text(&model, "a").expect("tokens")])
    {
        let answer = answer(&model, &prompt, &format, seed, 400);
        assert_eq!(answer.finish, Finish::Stop, "{}", answer.text);
        let value: Value = serde_json::from_str(&answer.text).expect(&answer.text);
        assert!(["cat", "dog"].contains(&value["kind"].as_str().expect("a text")), "{value}");
        assert!((0..=30).contains(&value["age"].as_i64().expect("a number")), "{value}");
        assert!(value["tame"].is_boolean() && value.as_object().expect("an object").len() == 3);
    }
}

#[test]
fn any_object_is_json_or_truncated() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let format = JsonFormat::object(model.tokenizer().expect("words")).expect("a format");
    let prompt = chat(&model, false);
    let mut whole = 0;
    for seed in 0..12 {
        let Answer { text, finish, tokens, .. } = answer(&model, &prompt, &format, seed, 60);
        match finish {
            Finish::Stop => {
                whole += 1;
                let value: Value = serde_json::from_str(&text).expect(&text);
                assert!(value.is_object(), "{text}");
            }
            Finish::Length => {
                assert_eq!(tokens, 60);
                let error = serde_json::from_str::<Value>(&text).expect_err("unfinished");
                assert!(error.is_eof() || text.contains('\u{FFFD}'), "{error}: {text}");
            }
            other => panic!("{other:?}: {text}"),
        }
    }
    assert!(whole > 0, "no reply was finished");
}

#[test]
fn thinking_is_free_and_the_reply_is_constrained() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let tokenizer = model.tokenizer().expect("words");
    let form = json!({ "enum": ["<|channel>", "<tool_call|>"] });
    let format = JsonFormat::schema(tokenizer, form).expect("a format");
    // The prompt ends inside thinking, and the model must close it to reply.
    let mut prompt = chat(&model, true);
    let opened = tokenizer.id_of("<|channel>").expect("a marker");
    prompt.tokens.push(opened);
    let mut parser = prompt.parser.clone().expect("a parser");
    parser.start = rullama_chat::Start::Thinking;
    prompt.parser = Some(parser);
    let limited = answer(&model, &prompt, &format, 5, 30);
    assert_eq!(limited.finish, Finish::Length, "random thinking does not end");
    assert!(!limited.thought.is_empty() && limited.text.is_empty());
    // The prompt ends after thinking.
    prompt.tokens.push(tokenizer.id_of("<channel|>").expect("a marker"));
    prompt.parser.as_mut().expect("a parser").start = rullama_chat::Start::Content;
    prompt.thinks = false;
    let answer = answer(&model, &prompt, &format, 5, 60);
    assert_eq!((answer.finish, answer.thought.as_str()), (Finish::Stop, ""));
    // Markers that the schema requires are text.
    assert!(["\"<|channel>\"", "\"<tool_call|>\""].contains(&&*answer.text), "{}", answer.text);
}

/// The events of a reply but the last.
fn events(model: &Model, format: &JsonFormat, options: &SamplingOptions) -> Vec<Event> {
    let mut session = model.session(&SessionOptions::default()).expect("a session");
    let (prompt, form) = (chat(model, false), format.constraint());
    let mut generation =
        Generation::constrained(&mut session, model, &prompt, options, 7, form).expect("begins");
    let mut events = Vec::new();
    while let Some(event) = block_on(generation.next()).expect("an event") {
        events.push(event);
    }
    let Some(Event::Done(done)) = events.pop() else { panic!("a reply ends") };
    assert_eq!(done.finish, Finish::Stop, "{events:?}");
    events
}

fn tools() -> Vec<Tool> {
    let parameters = json!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["cat", "dog"] },
            "age": { "type": "integer", "minimum": 0, "maximum": 30 },
            "name": { "type": "string", "maxLength": 4 },
        },
        "required": ["kind", "age"],
    });
    let tool = json!({ "name": "adopt", "parameters": parameters });
    vec![serde_json::from_value(tool).expect("a tool")]
}

#[test]
fn forced_calls_match_the_parameters() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let tokenizer = model.tokenizer().expect("words");
    let format =
        JsonFormat::compile(tokenizer, Output::Gemma4, &Format::call(Output::Gemma4, tools()))
            .expect("a format");
    let options = SamplingOptions { num_predict: 400, top_k: 0, top_p: 1.0, ..Default::default() };
    let events = events(&model, &format, &options);
    let [Event::ToolCall { name, arguments, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(name, "adopt");
    assert!(["cat", "dog"].contains(&arguments["kind"].as_str().expect("a text")), "{events:?}");
    assert!((0..=30).contains(&arguments["age"].as_i64().expect("a number")), "{events:?}");
    let nick = arguments.get("name").map_or("", |name| name.as_str().expect("a text"));
    assert!(nick.chars().count() <= 4, "{events:?}");
}

#[test]
fn replies_are_calls_or_text_of_a_format() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let tokenizer = model.tokenizer().expect("words");
    let text = TextFormat::Regex { pattern: "<[a-c]{2}>".into(), flags: String::new() };
    let calls = Some(CallFormat { output: Output::Gemma4, tools: tools() });
    let format = Format { text: Some(text), calls };
    let format = JsonFormat::compile(tokenizer, Output::Gemma4, &format).expect("a format");
    let opening = tokenizer.id_of("<|tool_call>").expect("a marker");
    for (bias, is_call) in [(100.0, true), (-100.0, false)] {
        let layer = json!({ "logit_bias": { opening.to_string(): bias }, "num_predict": 400 });
        let mut options = SamplingOptions::default();
        options.apply(&layer).expect("options");
        let events = events(&model, &format, &options);
        if is_call {
            assert!(matches!(&events[..], [Event::ToolCall { .. }]), "{events:?}");
        } else {
            let texts = events.iter().map(|event| match event {
                Event::Text(text) => text.as_str(),
                other => panic!("{other:?}"),
            });
            let text: String = texts.collect();
            assert!(text.len() == 4 && text.starts_with('<') && text.ends_with('>'), "{text}");
        }
    }
}

#[test]
fn the_real_vocabulary_supports_json() {
    let source = Rc::new(MemorySource::new("vocabulary", real_vocabulary()));
    let gguf = block_on(Gguf::open(source)).expect("the file opens");
    let tokenizer = tokenizer(&gguf).expect("words");
    let format = JsonFormat::schema(&tokenizer, json!({})).expect("a format");
    let end = tokenizer.eot().expect("turns end");
    let text = "{\"name\": \"Käse 🧀\",\n  \"parts\": [1, -2.5e3, true, null, {}]}";
    let mut constraint = format.constraint();
    let mut complete = false;
    for id in tokenizer.encode(text, Special::None) {
        assert!(!complete, "more comes");
        constraint.prepare().expect("a mask");
        let piece = tokenizer.token_text(id);
        assert!(constraint.allows(id), "{piece:?}");
        assert!(!constraint.allows(end), "the end before {piece:?}");
        for unwanted in ["<unused1>", "<|channel>", "<bos>"] {
            assert!(!constraint.allows(tokenizer.id_of(unwanted).expect("a token")), "{unwanted}");
        }
        complete = constraint.accept(id).expect("it was allowed");
    }
    assert!(complete, "nothing can follow the last brace");
    constraint.prepare().expect("a mask");
    assert!(constraint.allows(end) && !constraint.allows(tokenizer.id_of("a").expect("a letter")));
    assert!(!constraint.allows(u32::MAX));
}

#[test]
fn invalid_schemas_are_refused() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let tokenizer = model.tokenizer().expect("words");
    for bad in [
        json!("object"),
        json!({ "type": "objet" }),
        json!({ "$ref": "#/$defs/nothing" }),
        json!({ "type": "integer", "minimum": 3, "maximum": 2 }),
        json!({ "type": "string", "pattern": "(" }),
    ] {
        let error = JsonFormat::schema(tokenizer, bad.clone()).expect_err("an invalid schema");
        assert!(matches!(error, ConstraintError::Schema { .. }), "{bad}: {error}");
        assert_eq!(RuntimeError::from(error).code(), "bad_format");
    }
}
