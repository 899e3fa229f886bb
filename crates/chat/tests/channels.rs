//! The streaming parser on concrete output, in one piece and split at every position.

use rullama_chat::{Event, Parser, ParserOptions, Start, Thinking, Tool};
use serde_json::{Value, json};

fn thought(text: &str) -> Event {
    Event::Thinking(text.into())
}

fn text(text: &str) -> Event {
    Event::Text(text.into())
}

fn bad(raw: &str) -> Event {
    Event::BadCall { raw: raw.into() }
}

fn call(index: usize, name: &str, arguments: Value) -> Event {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    Event::ToolCall { index, name: name.into(), arguments }
}

fn parse(options: &ParserOptions, pieces: &[&str]) -> Vec<Event> {
    let mut parser = Parser::new(options.clone());
    let mut events = Vec::new();
    for piece in pieces {
        // A fresh list each time, like a caller that forwards events.
        let mut fresh = Vec::new();
        parser.push(piece, &mut fresh);
        fresh.into_iter().for_each(|event| append(&mut events, event));
    }
    let mut rest = Vec::new();
    parser.finish(&mut rest);
    rest.into_iter().for_each(|event| append(&mut events, event));
    events
}

/// Adds an event, merged into the last one if both are text of the same kind.
fn append(events: &mut Vec<Event>, event: Event) {
    match (events.last_mut(), event) {
        (Some(Event::Text(last)), Event::Text(more))
        | (Some(Event::Thinking(last)), Event::Thinking(more)) => {
            last.push_str(&more);
        }
        (_, event) => events.push(event),
    }
}

fn check_with(options: &ParserOptions, output: &str, expected: &[Event]) {
    assert_eq!(parse(options, &[output]), expected, "{output:?}");
    let cuts = output.char_indices().map(|(at, _)| at);
    for at in cuts {
        assert_eq!(
            parse(options, &[&output[..at], &output[at..]]),
            expected,
            "{output:?} cut at {at}"
        );
    }
    let characters: Vec<String> = output.chars().map(String::from).collect();
    let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
    assert_eq!(parse(options, &characters), expected, "{output:?} by characters");
}

fn check(output: &str, expected: &[Event]) {
    check_with(&ParserOptions::default(), output, expected);
}

fn check_after_open_thought(output: &str, expected: &[Event]) {
    check_with(
        &ParserOptions { start: Start::Thinking, ..ParserOptions::default() },
        output,
        expected,
    );
}

fn check_hidden(output: &str, expected: &[Event]) {
    check_with(
        &ParserOptions { thinking: Thinking::Hide, ..ParserOptions::default() },
        output,
        expected,
    );
}

#[test]
fn content() {
    check("", &[]);
    check("  a < b <c|> <|d \n", &[text("  a < b <c|> <|d \n")]);
    check("a<|chan", &[text("a<|chan")]);
    check("a <", &[text("a <")]);
    check("<<|channel>x<channel|>", &[text("<"), thought("x")]);
    check("é日<|channel>ü<channel|>😀", &[text("é日"), thought("ü"), text("😀")]);
}

#[test]
fn thoughts() {
    check(
        "<|channel>thought\nLet me see...\n<channel|>\n42",
        &[thought("Let me see..."), text("42")],
    );
    check("<|channel>thought<channel|>42", &[text("42")]);
    check("<|channel>thought\n<channel|>42", &[text("42")]);
    check("<|channel>thought\n\n  \n<channel|>42", &[text("42")]);
    check("<|channel>thought\n\n  a\n\nb<channel|>42", &[thought("\n  a\n\nb"), text("42")]);
    check(
        "<|channel>first<channel|><|channel>thought\nsecond<channel|>c",
        &[thought("firstsecond"), text("c")],
    );
    check("<|channel>thoughtful<channel|>c", &[thought("thoughtful"), text("c")]);
    check("<|channel>though<channel|>c", &[thought("though"), text("c")]);
    check("<|channel>thou<|x<channel|>c", &[thought("thou<|x"), text("c")]);
    check("<|channel><|channel>thought\na<channel|>c", &[thought("a"), text("c")]);
    check("<|channel>thought<|channel>thought\na<channel|>c", &[thought("a"), text("c")]);
    check("<|channel>thought\na<|channel>thought\nb<channel|>c", &[thought("ab"), text("c")]);
    check("a <|channel>thought\nb<channel|> c", &[text("a"), thought("b"), text("c")]);
    check("a<|channel>thought\nb<channel|>", &[text("a"), thought("b")]);
}

#[test]
fn unclosed_thoughts() {
    check("<|channel>", &[]);
    check("<|channel>thou", &[thought("thou")]);
    check("<|channel>thought", &[]);
    check("<|channel>thought\n", &[]);
    check("<|channel>thought\nabc \n", &[thought("abc \n")]);
    check("<|channel>thought\nabc<chan", &[thought("abc<chan")]);
}

#[test]
fn a_thought_opened_by_the_prompt() {
    check_after_open_thought("so\n<channel|>\n\nyes", &[thought("so"), text("yes")]);
    check_after_open_thought("<|channel>thought\nso<channel|>yes", &[thought("so"), text("yes")]);
    check_after_open_thought(
        "so<|tool_call>call:f{}<tool_call|>",
        &[thought("so"), call(0, "f", json!({}))],
    );
    check_after_open_thought("thought\nso", &[thought("thought\nso")]);
}

#[test]
fn hidden_thoughts() {
    check_hidden("<|channel>thought\na b<channel|> c", &[text("c")]);
    check_hidden("a<|channel>b<channel|>c", &[text("ac")]);
    check_hidden("<|channel>thought\na", &[]);
    check_hidden(
        "<|channel>a<|tool_call>call:f{}<tool_call|>b",
        &[call(0, "f", json!({})), text("b")],
    );
}

#[test]
fn stray_markers() {
    check("a<channel|>b", &[text("ab")]);
    check("a <channel|> b", &[text("a b")]);
    check("a<tool_call|>b<|tool_response>c", &[text("abc")]);
    check("<|channel>a<tool_call|>b<|tool_response><channel|>c", &[thought("ab"), text("c")]);
}

#[test]
fn calls() {
    let paris = json!({"city": "Paris"});
    let one = r#"<|tool_call>call:get{city:<|"|>Paris<|"|>}<tool_call|>"#;
    check(one, &[call(0, "get", paris.clone())]);
    check(&format!("Let me see. \n{one}"), &[text("Let me see."), call(0, "get", paris.clone())]);
    check(
        &format!("<|channel>thought\nhm<channel|>{one}"),
        &[thought("hm"), call(0, "get", paris.clone())],
    );
    check(&format!("<|channel>thought\nhm {one}"), &[thought("hm"), call(0, "get", paris.clone())]);
    check(
        &format!("{one}\n{one}"),
        &[call(0, "get", paris.clone()), call(1, "get", paris.clone())],
    );
    for noise in
        ["<tool_call|>", "<|tool_response>", " <tool_call|>\n<tool_call|> <|tool_response>\n"]
    {
        check(&format!("{one}{noise}"), &[call(0, "get", paris.clone())]);
        check(&format!("{one}{noise}Done. "), &[call(0, "get", paris.clone()), text("Done. ")]);
        check(
            &format!("{one}{noise}{one}"),
            &[call(0, "get", paris.clone()), call(1, "get", paris.clone())],
        );
    }
    check("<|tool_call><|tool_call>call:f{}<tool_call|>", &[call(0, "f", json!({}))]);
    check(
        "<|tool_call>call:f{s:<|\"|><|channel>a<|\"|>}<tool_call|>",
        &[call(0, "f", json!({"s": "<|channel>a"}))],
    );
}

#[test]
fn unfinished_and_malformed_calls() {
    check("<|tool_call>call:f{a:1}", &[call(0, "f", json!({"a": 1}))]);
    check("<|tool_call>call:f{a:1}<tool_", &[bad("call:f{a:1}<tool_")]);
    check("<|tool_call>call:f{s:<|\"|>abc", &[call(0, "f", json!({"s": "abc"}))]);
    check("a<|tool_call>call:f{a:1", &[text("a"), bad("call:f{a:1")]);
    check("<|tool_call> what? <tool_call|> b", &[bad(" what? "), text("b")]);
    check(
        "<|tool_call>x<tool_call|><|tool_call>call:f{}<tool_call|>",
        &[bad("x"), call(0, "f", json!({}))],
    );
    check("<|tool_call>", &[]);
    check("a<|tool_call> <tool_call|>b", &[text("ab")]);
}

#[test]
fn declared_tools_repair_bare_strings() {
    let tool = json!({"name": "f", "parameters": {"properties": {"s": {"type": "string"}}}});
    let tools: Vec<Tool> = vec![serde_json::from_value(tool).unwrap()];
    let options = ParserOptions { tools, ..ParserOptions::default() };
    check_with(
        &options,
        "<|tool_call>call:f{s:hello}<tool_call|>",
        &[call(0, "f", json!({"s": "hello"}))],
    );
}

#[test]
fn a_piece_without_markers_is_reported_at_once() {
    let mut parser = Parser::new(ParserOptions::default());
    let mut events = Vec::new();
    parser.push("Hello, wor", &mut events);
    assert_eq!(events, [text("Hello, wor")]);
    parser.push("ld <|", &mut events);
    assert_eq!(events, [text("Hello, world")]);
    parser.push("x", &mut events);
    assert_eq!(events, [text("Hello, world <|x")]);
}
