//! Invariants of streams that clients' parsers rely on, for any sequence of events.

use proptest::prelude::*;
use rullama_api::request::ollama;
use rullama_api::request::openai::{chat_completions, completions};
use rullama_api::response::anthropic::MessagesWriter;
use rullama_api::response::ollama::OllamaWriter;
use rullama_api::response::openai::{ChatWriter, CompletionsWriter, ResponsesWriter};
use rullama_api::response::{Reply, ReplyWriter};
use rullama_api::{ApiError, DoneReason, GenerationEvent, Stats};
use serde_json::{Map, Value};

use super::support::{Fixed, server_sent};
use super::{anthropic_stream, responses_stream};

const CHOICES: u32 = 3;

fn event() -> impl Strategy<Value = GenerationEvent> {
    let text = || prop_oneof!["\\PC{0,6}", Just("\n\n".to_owned()), Just("data: x\r\n".to_owned())];
    let choice = || prop_oneof![6 => Just(0), 1 => 1..=CHOICES];
    let arguments = prop::collection::vec(("[a-z]{0,3}", text()), 0..3).prop_map(|pairs| {
        pairs.into_iter().map(|(name, value)| (name, Value::from(value))).collect::<Map<_, _>>()
    });
    let reason = prop_oneof![
        Just(DoneReason::Stop),
        Just(DoneReason::Length),
        Just(DoneReason::ToolCalls),
        "[a-z]{1,3}".prop_map(DoneReason::StopSequence),
    ];
    prop_oneof![
        1 => (0_u64..9, 0_u64..9).prop_map(|(prompt_tokens, cached_tokens)| GenerationEvent::Started { prompt_tokens, cached_tokens }),
        4 => (choice(), text()).prop_map(|(choice, text)| GenerationEvent::Thinking { choice, text }),
        6 => (choice(), text()).prop_map(|(choice, text)| GenerationEvent::Text { choice, text, logprobs: vec![] }),
        3 => (choice(), text(), arguments).prop_map(|(choice, name, arguments)| GenerationEvent::ToolCall { choice, name, arguments }),
        1 => (choice(), reason).prop_map(|(choice, reason)| GenerationEvent::Done { choice, reason, stats: Stats::default() }),
    ]
}

/// Events that end with all choices done, or with a failure.
fn events() -> impl Strategy<Value = Vec<GenerationEvent>> {
    (prop::collection::vec(event(), 0..24), prop::bool::weighted(0.2)).prop_map(
        |(mut events, fails)| {
            if fails {
                events.push(GenerationEvent::Failed(ApiError::Internal { message: "lost".into() }));
            }
            let done = |choice| GenerationEvent::Done {
                choice,
                reason: DoneReason::Stop,
                stats: Stats::default(),
            };
            events.extend((0..CHOICES).map(done));
            events
        },
    )
}

/// The stream, with keep-alives between the events.
fn stream(writer: &mut dyn ReplyWriter, events: &[GenerationEvent]) -> String {
    let mut environment = Fixed(0);
    let mut out = Vec::new();
    for event in events {
        writer.keep_alive(&mut environment, &mut out);
        writer.event(&mut environment, event, &mut out);
    }
    assert!(writer.is_finished());
    let length = out.len();
    writer.keep_alive(&mut environment, &mut out);
    assert_eq!(out.len(), length, "nothing comes after the last frame");
    String::from_utf8(out).expect("frames are text")
}

/// The reply that the events describe, as far as a stream with `choices` choices shows it; and whether they fail.
fn collected(events: &[GenerationEvent], choices: usize) -> (Reply, bool) {
    let body = format!(
        r#"{{"model": "m", "messages": [{{"role": "user", "content": ""}}], "n": {choices}}}"#
    );
    let mut reply = Reply::new(&chat_completions(body.as_bytes()).expect("a chat"));
    for event in events {
        if reply.is_complete() {
            break;
        }
        if reply.push(event.clone()).is_err() {
            return (reply, true);
        }
    }
    (reply, false)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ollama_lines(events in events()) {
        let request = ollama::chat(br#"{"model": "m", "messages": [{"role": "user", "content": ""}]}"#).expect("a chat");
        let stream = stream(&mut OllamaWriter::chat(&request), &events);
        let (reply, fails) = collected(&events, 1);
        prop_assert!(!stream.contains("\n\n") && stream.ends_with('\n'));
        let (mut content, mut thinking, mut calls) = (String::new(), String::new(), 0);
        let lines: Vec<Value> = stream.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for (i, line) in lines.iter().enumerate() {
            let is_last = i + 1 == lines.len();
            if is_last && fails {
                prop_assert_eq!(line, &serde_json::json!({"error": "lost"}));
                break;
            }
            prop_assert_eq!(&line["done"], is_last);
            prop_assert_eq!(&line["message"]["role"], "assistant");
            content.push_str(text(&line["message"]["content"]));
            thinking.push_str(line["message"]["thinking"].as_str().unwrap_or_default());
            for call in line["message"]["tool_calls"].as_array().into_iter().flatten() {
                prop_assert_eq!(&call["function"]["index"], calls);
                calls += 1;
            }
        }
        prop_assert_eq!(content, reply.choices[0].text());
        prop_assert_eq!(thinking, reply.choices[0].thinking());
        prop_assert_eq!(calls, reply.choices[0].calls().count());
    }

    #[test]
    fn chat_chunks(events in events()) {
        let body = format!(r#"{{"model": "m", "messages": [{{"role": "user", "content": ""}}], "n": {CHOICES}}}"#);
        let request = chat_completions(body.as_bytes()).expect("a chat");
        let stream = stream(&mut ChatWriter::new(&mut Fixed(0), &request), &events);
        let (reply, fails) = collected(&events, CHOICES as usize);
        let frames = server_sent(&stream);
        let (last, chunks) = frames.split_last().expect("at least one frame");
        prop_assert_eq!(last.1["error"].is_object(), fails);
        prop_assert_eq!(last.1 == "[DONE]", !fails);
        for (index, choice) in reply.choices.iter().enumerate() {
            let own = chunks.iter().map(|(_, chunk)| &chunk["choices"][0]).filter(|own| own["index"] == index);
            let own: Vec<&Value> = own.collect();
            let roles = own.iter().filter(|own| own["delta"]["role"] == "assistant").count();
            let ends = own.iter().filter(|own| !own["finish_reason"].is_null()).count();
            prop_assert!(roles == 1 || (fails && own.is_empty()));
            prop_assert!(ends == 1 || fails);
            let all = |field: &str| own.iter().filter_map(|own| own["delta"][field].as_str()).collect::<String>();
            prop_assert_eq!(all("content"), choice.text());
            prop_assert_eq!(all("reasoning_content"), choice.thinking());
            let calls: Vec<&Value> = own.iter().filter_map(|own| own["delta"].get("tool_calls")).collect();
            prop_assert_eq!(calls.len(), choice.calls().count());
            for (position, call) in calls.iter().enumerate() {
                prop_assert_eq!(&call[0]["index"], position);
                let arguments: Value = serde_json::from_str(text(&call[0]["function"]["arguments"])).expect("JSON");
                prop_assert!(arguments.is_object());
            }
            for own in &own {
                prop_assert!(own["delta"]["content"].is_null() || own["delta"]["reasoning"].is_null(), "never mixed");
            }
        }
    }

    #[test]
    fn completion_chunks(events in events()) {
        let body = format!(r#"{{"model": "m", "prompt": "x", "n": {CHOICES}}}"#);
        let request = completions(body.as_bytes()).expect("a prompt");
        let stream = stream(&mut CompletionsWriter::new(&mut Fixed(0), &request), &events);
        let (reply, _) = collected(&events, CHOICES as usize);
        let frames = server_sent(&stream);
        for (index, choice) in reply.choices.iter().enumerate() {
            let own = frames.iter().map(|(_, chunk)| &chunk["choices"][0]).filter(|own| own["index"] == index);
            let all: String = own.filter_map(|own| own["text"].as_str()).collect();
            prop_assert_eq!(all, choice.text());
        }
    }

    #[test]
    fn anthropic_blocks(events in events()) {
        let request = anthropic_stream::request();
        let stream = stream(&mut MessagesWriter::new(&mut Fixed(0), &request), &events);
        let (reply, fails) = collected(&events, 1);
        let mut open: Option<(Value, String)> = None;
        let (mut blocks, mut content, mut thinking) = (0, String::new(), String::new());
        let frames: Vec<(String, Value)> = server_sent(&stream)
            .into_iter()
            .map(|(name, data)| (name.expect("SDKs drop frames without a name"), data))
            .filter(|(name, _)| name != "ping")
            .collect();
        for (i, (name, data)) in frames.iter().enumerate() {
            prop_assert_eq!(text(&data["type"]), name.as_str());
            prop_assert_eq!(name == "message_start", i == 0 && name != "error");
            match name.as_str() {
                "content_block_start" => {
                    prop_assert!(open.is_none(), "one block at a time");
                    prop_assert_eq!(&data["index"], blocks);
                    blocks += 1;
                    open = Some((data["content_block"]["type"].clone(), String::new()));
                }
                "content_block_delta" => {
                    let (kind, partial) = open.as_mut().expect("an open block");
                    prop_assert_eq!(&data["index"], blocks - 1);
                    let delta = &data["delta"];
                    let expected = match text(&delta["type"]) {
                        "text_delta" => { content.push_str(text(&delta["text"])); "text" }
                        "thinking_delta" => { thinking.push_str(text(&delta["thinking"])); "thinking" }
                        "signature_delta" => "thinking",
                        _ => { partial.push_str(text(&delta["partial_json"])); "tool_use" }
                    };
                    prop_assert_eq!(text(kind), expected);
                }
                "content_block_stop" => {
                    let (kind, partial) = open.take().expect("an open block");
                    if kind == "tool_use" {
                        prop_assert!(serde_json::from_str::<Map<String, Value>>(&partial).is_ok());
                    }
                }
                "message_delta" => prop_assert!(open.is_none() && i + 2 == frames.len()),
                "message_stop" | "error" => prop_assert_eq!(i + 1, frames.len()),
                _ => {}
            }
        }
        prop_assert_eq!(frames[frames.len() - 1].0.as_str(), if fails { "error" } else { "message_stop" });
        prop_assert_eq!(content, reply.choices[0].text());
        prop_assert_eq!(thinking, reply.choices[0].thinking());
    }

    #[test]
    fn responses_items(events in events()) {
        let request = responses_stream::request();
        let stream = stream(&mut ResponsesWriter::new(&mut Fixed(0), &request), &events);
        let (reply, fails) = collected(&events, 1);
        let frames = server_sent(&stream);
        let mut open: Option<Value> = None;
        let mut parts = 0;
        let (mut items, mut content, mut thinking) = (Vec::new(), String::new(), String::new());
        for (i, (name, data)) in frames.iter().enumerate() {
            let kind = text(&data["type"]);
            prop_assert_eq!(name.as_deref(), Some(kind));
            prop_assert_eq!(&data["sequence_number"], i);
            prop_assert_eq!(kind == "response.created", i == 0);
            if let Some(id) = data["response"].get("id") {
                prop_assert_eq!(id, &frames[0].1["response"]["id"], "one id");
            }
            if let Some(index) = data.get("output_index") {
                prop_assert_eq!(index, items.len(), "contiguous");
            }
            if let Some(id) = data.get("item_id") {
                prop_assert_eq!(id, &open.as_ref().expect("an open item")["id"]);
            }
            match kind.strip_prefix("response.").expect("a prefix") {
                "in_progress" => prop_assert!(items.is_empty() && open.is_none()),
                "output_item.added" => {
                    prop_assert!(open.is_none(), "one item at a time");
                    open = Some(data["item"].clone());
                    parts = 0;
                }
                "output_item.done" => {
                    let added = open.take().expect("an open item");
                    prop_assert_eq!(&added["id"], &data["item"]["id"]);
                    prop_assert_eq!(added.get("call_id"), data["item"].get("call_id"));
                    prop_assert_eq!(parts, 0);
                    items.push(data["item"].clone());
                }
                "content_part.added" | "reasoning_summary_part.added" => parts += 1,
                "content_part.done" | "reasoning_summary_part.done" => parts -= 1,
                "output_text.delta" => {
                    prop_assert_eq!(parts, 1);
                    content.push_str(text(&data["delta"]));
                }
                "reasoning_summary_text.delta" => {
                    prop_assert_eq!(parts, 1);
                    thinking.push_str(text(&data["delta"]));
                }
                "completed" | "incomplete" | "failed" => {
                    prop_assert!(open.is_none() && i + 1 == frames.len());
                    prop_assert_eq!(&data["response"]["output"], &Value::from(items.clone()));
                    prop_assert_eq!(kind == "response.failed", fails);
                }
                _ => {}
            }
        }
        prop_assert_eq!(content, reply.choices[0].text());
        prop_assert_eq!(thinking, reply.choices[0].thinking());
        prop_assert_eq!(items.len(), reply.choices[0].items.len());
    }
}
