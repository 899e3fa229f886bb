//! Bytes as a model's output, as a client's conversation and as a chat template.

use rullama_chat::{
    Call, ChatTemplate, Conversation, Event, Family, Message, Output, Parser, ParserOptions,
    Prompt, PromptEnd, RenderOptions, Start, Thinking, Tool, ToolCall, parse_call, render,
};
use serde_json::{Value, json};

use super::text;

/// Parses the bytes as the output of a model and as a conversation, and runs them as a chat template. The first byte selects the options of the parser, the
/// second how the output is split into pieces, which must not change the result.
pub fn chat(data: &[u8]) {
    let Some((&[flags, cuts], rest)) = data.split_first_chunk() else { return };
    let text = text(rest);
    let options = options(flags);
    output(&text, &options, cuts);
    if let Ok(call) = parse_call(&text, &options.tools) {
        call_again(&call);
    }
    if let Ok(conversation) = Conversation::from_json(&text) {
        conversation_renders(&conversation);
    }
    template_renders(&text);
}

/// Runs the text as a model's chat template, where the feature for it is on.
fn template_renders(text: &str) {
    let Ok(Some(template)) = ChatTemplate::new(text, "<s>", "</s>") else { return };
    let messages = vec![Message::new("user", "a text"), Message::new("assistant", "another")];
    let conversation = Conversation { messages, ..Conversation::default() };
    if let Ok(prompt) = template.render(&conversation, false) {
        assert!(prompt.text().len() < 32 << 20, "the output is not limited");
    }
}

fn options(flags: u8) -> ParserOptions {
    let tool = json!({ "name": "look", "parameters": { "type": "object", "properties": {
        "where": { "type": "string" }, "far": { "type": "number" }, "list": { "type": "array" },
    } } });
    let tool = serde_json::from_value::<Tool>(tool).expect("a valid tool");
    ParserOptions {
        thinking: if flags & 1 == 0 { Thinking::Show } else { Thinking::Hide },
        start: if flags & 2 == 0 { Start::Content } else { Start::Thinking },
        output: match flags >> 3 & 7 {
            1 => Output::Gemma3,
            2 => Output::FunctionGemma,
            3 => Output::Tagged,
            4 => Output::Llama3,
            _ => Output::Gemma4,
        },
        tools: if flags & 4 == 0 { vec![tool] } else { vec![] },
    }
}

fn output(text: &str, options: &ParserOptions, cuts: u8) {
    let whole = parse(options, [text]);
    assert_eq!(parse(options, pieces(text, cuts)), whole, "splitting the text changed the events");
    assert_eq!(
        parse(options, text.split_inclusive(|_| true)),
        whole,
        "single characters changed the events"
    );
    let mut calls = 0;
    for event in &whole {
        match event {
            Event::Text(piece) => assert!(!piece.is_empty()),
            Event::Thinking(piece) => {
                assert!(!piece.is_empty() && options.thinking == Thinking::Show);
            }
            Event::ToolCall { index, name, arguments } => {
                assert_eq!((*index, name.is_empty()), (calls, false));
                calls += 1;
                call_again(&Call { name: name.clone(), arguments: arguments.clone() });
            }
            Event::BadCall { raw } => {
                let again = options.output.parse_call(raw, &options.tools);
                assert!(again.is_err(), "a good call was called bad");
            }
        }
    }
    let shown = ParserOptions { thinking: Thinking::Show, ..options.clone() };
    let answers = |events: &[Event]| -> Vec<Event> {
        events.iter().filter(|event| !matches!(event, Event::Thinking(_))).cloned().collect()
    };
    assert_eq!(
        joined(answers(&parse(&shown, [text]))),
        joined(answers(&whole)),
        "hiding thinking changed the answer"
    );
}

/// All events of a message parsed in these pieces.
fn parse<'a>(options: &ParserOptions, pieces: impl IntoIterator<Item = &'a str>) -> Vec<Event> {
    let mut parser = Parser::new(options.clone());
    let mut all = Vec::new();
    for piece in pieces {
        let mut events = Vec::new();
        parser.push(piece, &mut events);
        all.append(&mut events);
    }
    let mut events = Vec::new();
    parser.finish(&mut events);
    all.append(&mut events);
    joined(all)
}

/// Joins consecutive events of the same kind.
fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for event in events {
        match (out.last_mut(), &event) {
            (Some(Event::Text(last)), Event::Text(more))
            | (Some(Event::Thinking(last)), Event::Thinking(more)) => last.push_str(more),
            _ => out.push(event),
        }
    }
    out
}

/// The text in pieces of about one to eight characters, by the seed.
fn pieces(text: &str, seed: u8) -> Vec<&str> {
    let (mut pieces, mut rest, mut state) = (Vec::new(), text, u32::from(seed));
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(1 + (state >> 29) as usize));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A parsed call can be rendered into a prompt and parsed again, with the same result.
fn call_again(call: &Call) {
    if !plain_word(&call.name) || !call.arguments.iter().all(|(key, value)| plain(key, value)) {
        return;
    }
    let message = Message {
        role: "assistant".into(),
        tool_calls: vec![ToolCall {
            id: None,
            name: call.name.clone(),
            arguments: call.arguments.clone().into(),
        }],
        ..Message::default()
    };
    let conversation = Conversation { messages: vec![message], ..Conversation::default() };
    let options = RenderOptions { family: Family::Small, repair: false };
    let prompt = render(&conversation, options).expect("a call can be rendered").text();
    let start =
        prompt.find("<|tool_call>").expect("the call is in the prompt") + "<|tool_call>".len();
    let end = prompt.find("<tool_call|>").expect("the call is closed");
    let again = parse_call(&prompt[start..end], &[]).expect("a rendered call can be read");
    assert_eq!(&again, call, "{prompt}");
}

/// Whether a key and a value are unambiguous: the notation has no escapes.
fn plain(key: &str, value: &Value) -> bool {
    plain_word(key)
        && match value {
            Value::String(text) => !text.contains(['<', '|', '>']),
            Value::Array(items) => items.iter().all(|item| plain("item", item)),
            Value::Object(map) => map.iter().all(|(key, value)| plain(key, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
}

fn plain_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn conversation_renders(conversation: &Conversation) {
    let text = serde_json::to_string(conversation).expect("a conversation can be written");
    let again = Conversation::from_json(&text).expect("a written conversation can be read");
    for repair in [false, true] {
        let rendered = |family| {
            let prompt = render(conversation, RenderOptions { family, repair });
            let rendered_again = render(&again, RenderOptions { family, repair });
            if let Ok(prompt) = &prompt {
                assert_eq!(rendered_again.ok().as_ref(), Some(prompt), "{text}");
            }
            prompt
        };
        for family in Family::ALL {
            if let Ok(prompt) = rendered(family) {
                assert!(prompt.spans().windows(2).all(|pair| pair[0].trusted != pair[1].trusted));
            }
        }
        let (small, large) = (rendered(Family::Small), rendered(Family::Large));
        assert_eq!(small.is_ok(), large.is_ok());
        let (Ok(small), Ok(large)) = (small, large) else { return };
        spans(&small);
        spans(&large);
        let (small, large) = (small.text(), large.text());
        let more = large.strip_prefix(&small).expect("the families differ at the end only");
        assert!(matches!(more, "" | "<|channel>thought\n<channel|>"), "{more}");
    }
}

/// Spans are not empty, alternate in trust, and the first is from the template.
fn spans(prompt: &Prompt) {
    let spans = prompt.spans();
    assert!(spans.iter().all(|span| !span.text.is_empty()));
    assert!(spans.windows(2).all(|pair| pair[0].trusted != pair[1].trusted));
    assert!(spans.first().is_some_and(|span| span.trusted && span.text.starts_with("<bos>")));
    assert!(matches!(
        prompt.end(),
        PromptEnd::Content | PromptEnd::Thinking | PromptEnd::ToolResult
    ));
}
