//! One conversation written for four APIs is parsed into the same messages.

use proptest::prelude::*;
use rullama_api::request::{anthropic, ollama, openai};
use rullama_api::{GenerationRequest, MediaKind};
use rullama_chat::Content;
use serde_json::{Value, json};

use super::entry::read_all;
use super::support::{PNG, WAV, bytes, chat};

/// A question, and a reply with calls and their results.
#[derive(Debug, Clone)]
struct Exchange {
    question: String,
    images: usize,
    thought: Option<String>,
    reply: String,
    calls: Vec<Call>,
    /// Whether results come in the reverse order of the calls.
    is_reversed: bool,
}

#[derive(Debug, Clone)]
struct Call {
    name: String,
    argument: i64,
    result: String,
    has_image: bool,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let call = ("[f-h]", any::<i64>(), "[a-z]{1,4}", prop::bool::weighted(0.3))
        .prop_map(|(name, argument, result, has_image)| Call { name, argument, result, has_image });
    (
        "[a-z]{1,5}",
        0_usize..3,
        prop::option::of("[a-z]{1,5}"),
        "[a-z]{1,5}",
        prop::collection::vec(call, 0..4),
        any::<bool>(),
    )
        .prop_map(|(question, images, thought, reply, calls, is_reversed)| Exchange {
            question,
            images,
            thought,
            reply,
            calls,
            is_reversed,
        })
}

impl Exchange {
    /// Calls with their positions, in the order of the results.
    fn results(&self) -> Vec<(usize, &Call)> {
        let mut results: Vec<_> = self.calls.iter().enumerate().collect();
        if self.is_reversed {
            results.reverse();
        }
        results
    }

    fn ollama(&self) -> Vec<Value> {
        let call = |(i, call): (usize, &Call)| json!({"id": i.to_string(), "function": {"name": call.name, "arguments": {"a": call.argument}}});
        let calls: Vec<Value> = self.calls.iter().enumerate().map(call).collect();
        let mut messages = vec![
            json!({"role": "user", "content": self.question, "images": vec![PNG; self.images]}),
            json!({"role": "assistant", "content": self.reply, "thinking": self.thought, "tool_calls": calls}),
        ];
        messages.extend(self.results().iter().map(|(i, call)| {
            let images = vec![PNG; usize::from(call.has_image)];
            json!({"role": "tool", "tool_call_id": i.to_string(), "content": call.result, "images": images})
        }));
        messages
    }

    fn openai(&self) -> Vec<Value> {
        let parts = |text: &str, images: usize| {
            let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}});
            let mut parts = vec![image; images];
            parts.push(json!({"type": "text", "text": text}));
            parts
        };
        let call = |(i, call): (usize, &Call)| {
            let arguments = json!({"a": call.argument}).to_string();
            json!({"id": i.to_string(), "type": "function", "function": {"name": call.name, "arguments": arguments}})
        };
        let calls: Vec<Value> = self.calls.iter().enumerate().map(call).collect();
        let mut messages = vec![
            json!({"role": "user", "content": parts(&self.question, self.images)}),
            json!({"role": "assistant", "content": self.reply, "reasoning_content": self.thought, "tool_calls": calls}),
        ];
        messages.extend(self.results().iter().map(|(i, call)| {
            let content = parts(&call.result, usize::from(call.has_image));
            json!({"role": "tool", "tool_call_id": i.to_string(), "content": content})
        }));
        messages
    }

    fn responses(&self, offset: usize) -> Vec<Value> {
        let parts = |text: &str, images: usize| {
            let image =
                json!({"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}")});
            let mut parts = vec![image; images];
            parts.push(json!({"type": "input_text", "text": text}));
            parts
        };
        let id = |i: usize| format!("call_{offset}_{i}");
        let mut items =
            vec![json!({"role": "user", "content": parts(&self.question, self.images)})];
        items.extend(
            self.thought
                .as_ref()
                .map(|thought| json!({"type": "reasoning", "encrypted_content": thought})),
        );
        items.push(
            json!({"role": "assistant", "content": [{"type": "output_text", "text": self.reply}]}),
        );
        items.extend(self.calls.iter().enumerate().map(|(i, call)| {
            let arguments = json!({"a": call.argument}).to_string();
            json!({"type": "function_call", "call_id": id(i), "name": call.name, "arguments": arguments})
        }));
        items.extend(self.results().iter().map(|(i, call)| {
            let output = parts(&call.result, usize::from(call.has_image));
            json!({"type": "function_call_output", "call_id": id(*i), "output": output})
        }));
        items
    }

    fn anthropic(&self) -> Vec<Value> {
        let blocks = |text: &str, images: usize| {
            let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
            let mut blocks = vec![image; images];
            blocks.push(json!({"type": "text", "text": text}));
            blocks
        };
        let mut reply: Vec<Value> = self
            .thought
            .iter()
            .map(|thought| json!({"type": "thinking", "thinking": thought}))
            .collect();
        reply.push(json!({"type": "text", "text": self.reply}));
        reply.extend(self.calls.iter().enumerate().map(|(i, call)| {
            json!({"type": "tool_use", "id": i.to_string(), "name": call.name, "input": {"a": call.argument}})
        }));
        let result = |(i, call): &(usize, &Call)| {
            let content = blocks(&call.result, usize::from(call.has_image));
            json!({"type": "tool_result", "tool_use_id": i.to_string(), "content": content})
        };
        let results: Vec<Value> = self.results().iter().map(result).collect();
        let mut messages = vec![
            json!({"role": "user", "content": blocks(&self.question, self.images)}),
            json!({"role": "assistant", "content": reply}),
        ];
        if !results.is_empty() {
            messages.push(json!({"role": "user", "content": results}));
        }
        messages
    }
}

/// The model's view of a request: a line per message, and the files.
fn seen(request: &GenerationRequest) -> (Vec<String>, Vec<MediaKind>) {
    let input = chat(request);
    let line = |message: &rullama_chat::Message| {
        let content = match &message.content {
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => parts
                .iter()
                .map(|part| part.text.clone().unwrap_or_else(|| format!("[{}]", part.kind)))
                .collect(),
            other => panic!("{other:?}"),
        };
        let calls: Vec<String> = message
            .tool_calls
            .iter()
            .map(|call| format!("{}{}", call.name, call.arguments))
            .collect();
        format!("{}: {:?} {content} {calls:?} {:?}", message.role, message.reasoning, message.name)
    };
    let media = input.media.iter().map(|media| media.kind).collect();
    (input.conversation.messages.iter().map(line).collect(), media)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_four_apis(exchanges in prop::collection::vec(exchange(), 1..4), system in "[a-z]{1,5}") {
        let system_message = json!({"role": "system", "content": system});
        let last = json!({"role": "user", "content": "end"});
        let all = |messages: Vec<Value>| [vec![system_message.clone()], messages, vec![last.clone()]].concat();
        let ollama_body = json!({"model": "m", "messages": all(exchanges.iter().flat_map(Exchange::ollama).collect())});
        let openai_body = json!({"model": "m", "messages": all(exchanges.iter().flat_map(Exchange::openai).collect())});
        let items = exchanges.iter().enumerate().flat_map(|(i, exchange)| exchange.responses(i)).collect();
        let responses_body = json!({"model": "m", "input": all(items)});
        let mut messages: Vec<Value> = exchanges.iter().flat_map(Exchange::anthropic).collect();
        messages.push(last.clone());
        let anthropic_body = json!({"model": "m", "max_tokens": 9, "system": system, "messages": messages});

        let expected = seen(&ollama::chat(&bytes(&ollama_body)).expect("right"));
        let images: usize = exchanges.iter().map(|e| e.images + e.calls.iter().filter(|c| c.has_image).count()).sum();
        prop_assert_eq!(&expected.1, &vec![MediaKind::Image; images]);
        let results: usize = exchanges.iter().map(|exchange| exchange.calls.len()).sum();
        prop_assert_eq!(expected.0.len(), 2 + 2 * exchanges.len() + results);
        prop_assert_eq!(&seen(&openai::chat_completions(&bytes(&openai_body)).expect("right")), &expected);
        prop_assert_eq!(&seen(&openai::responses(&bytes(&responses_body)).expect("right").generation), &expected);
        prop_assert_eq!(&seen(&anthropic::messages(&bytes(&anthropic_body)).expect("right")), &expected);
        for body in [ollama_body, openai_body, responses_body, anthropic_body] {
            read_all(&bytes(&body));
        }
    }

    /// Valid requests with one character changed.
    #[test]
    fn slightly_wrong(exchange in exchange(), place in any::<prop::sample::Index>(), byte in any::<u8>(), wav in any::<bool>()) {
        let body = json!({"model": "m", "max_tokens": 9, "messages": exchange.anthropic(), "input": exchange.responses(0)});
        let body = if wav { body.to_string().replace(PNG, WAV) } else { body.to_string() };
        let mut body = body.into_bytes();
        let place = place.index(body.len());
        body[place] = byte;
        read_all(&body);
    }
}
