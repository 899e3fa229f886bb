//! A fixed clock, sequential ids, and short constructors of events.

use std::time::Duration;

use rullama_api::response::{Reply, ReplyWriter};
use rullama_api::{
    ChatInput, DoneReason, Environment, GenerationEvent, GenerationRequest, Input, Stats,
    Timestamp, TokenLogprob,
};
use serde_json::{Value, json};

/// 1 × 1 pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The beginning of a WAV file.
pub(crate) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAA=";

/// 2026-05-01, 8 o'clock; random numbers 1, 2, 3, …
pub(crate) struct Fixed(pub(crate) u64);

impl Environment for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(Duration::from_secs(1_777_622_400))
    }

    fn random(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// The bytes of a JSON value.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

pub(crate) fn started() -> GenerationEvent {
    GenerationEvent::Started { prompt_tokens: 12, cached_tokens: 8 }
}

pub(crate) fn thinking(text: &str) -> GenerationEvent {
    GenerationEvent::Thinking { choice: 0, text: text.to_owned() }
}

pub(crate) fn text(text: &str) -> GenerationEvent {
    text_of(0, text)
}

pub(crate) fn text_of(choice: u32, text: &str) -> GenerationEvent {
    GenerationEvent::Text { choice, text: text.to_owned(), logprobs: Vec::new() }
}

/// `Hi` with its log-probability and one alternative.
pub(crate) fn text_with_logprobs() -> GenerationEvent {
    let token = |token: &str, logprob| TokenLogprob {
        token: token.to_owned(),
        bytes: token.as_bytes().to_vec(),
        logprob,
        top: Vec::new(),
    };
    let top = vec![token("Hi", -0.02), token("Ho", f32::NEG_INFINITY)];
    let logprobs = vec![TokenLogprob { top, ..token("Hi", -0.02) }];
    GenerationEvent::Text { choice: 0, text: "Hi".to_owned(), logprobs }
}

pub(crate) fn call(name: &str, arguments: &Value) -> GenerationEvent {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    GenerationEvent::ToolCall { choice: 0, name: name.to_owned(), arguments }
}

pub(crate) fn done(reason: DoneReason) -> GenerationEvent {
    done_of(0, reason)
}

pub(crate) fn done_of(choice: u32, reason: DoneReason) -> GenerationEvent {
    let stats = Stats {
        completion_tokens: 7,
        reasoning_tokens: 3,
        load: Duration::from_nanos(1),
        prompt: Duration::from_nanos(3),
        eval: Duration::from_nanos(5),
        total: Duration::from_nanos(9),
        context: vec![2, 4, 6],
    };
    GenerationEvent::Done { choice, reason, stats }
}

/// A thought, text and a call.
pub(crate) fn everything() -> Vec<GenerationEvent> {
    vec![
        started(),
        thinking("Let"),
        text("Hi"),
        call("f", &json!({"a": 1})),
        done(DoneReason::ToolCalls),
    ]
}

/// The stream of these events.
pub(crate) fn stream(writer: &mut dyn ReplyWriter, events: &[GenerationEvent]) -> String {
    let mut environment = Fixed(100);
    let mut out = Vec::new();
    for event in events {
        writer.event(&mut environment, event, &mut out);
    }
    String::from_utf8(out).expect("frames are text")
}

/// The body of these events.
pub(crate) fn body(
    writer: &mut dyn ReplyWriter,
    request: &GenerationRequest,
    events: &[GenerationEvent],
) -> Value {
    let mut reply = Reply::new(request);
    for event in events {
        reply.push(event.clone()).expect("no event is a failure");
    }
    assert!(reply.is_complete());
    writer.body(&mut Fixed(100), &reply)
}

/// The events of a stream of server-sent events: names (where given) and data.
pub(crate) fn server_sent(stream: &str) -> Vec<(Option<String>, Value)> {
    let frames = stream.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    let frame = |frame: &str| {
        let mut name = None;
        let mut data = Value::Null;
        for line in frame.lines() {
            if let Some(text) = line.strip_prefix("event: ") {
                name = Some(text.to_owned());
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).unwrap_or_else(|_| text.into());
            } else {
                panic!("neither event nor data: {line:?}");
            }
        }
        (name, data)
    };
    frames.map(frame).collect()
}

/// A chat's input.
pub(crate) fn chat(request: &GenerationRequest) -> &ChatInput {
    match &request.input {
        Input::Chat(chat) => chat,
        other => panic!("not a chat: {other:?}"),
    }
}

/// The conversation as JSON, without defaults.
pub(crate) fn messages(request: &GenerationRequest) -> Value {
    serde_json::to_value(&chat(request).conversation.messages).expect("messages are JSON")
}
