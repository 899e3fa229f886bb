//! The demo model's held-out test cases (`goldens/demo`) and their checks.

use rullama_chat::{Conversation, Message, ToolCall};
use serde_json::{Map, Value, json};

use crate::golden;

/// A held-out question for the demo model, and the check of its answer.
#[derive(Debug, Clone)]
pub struct DemoCase {
    /// The skill it tests, as in the model card.
    pub skill: String,
    /// The conversation sent.
    pub conversation: Conversation,
    /// The image or audio clip of the last message: its kind and the file's bytes.
    pub file: Option<(FileKind, Vec<u8>)>,
    question: String,
    check: Value,
    /// The result of the called tool.
    result: Option<Value>,
}

/// Kind of a case's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// An image.
    Image,
    /// An audio clip.
    Audio,
}

/// The model's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DemoAnswer {
    /// Whether it contained thinking.
    pub thought: bool,
    /// The answer's text.
    pub text: String,
    /// The tools it called, with their arguments.
    pub calls: Vec<(String, Map<String, Value>)>,
}

/// The text cases.
///
/// # Panics
/// If the file in `goldens/` is broken, as all functions here.
pub fn demo_cases() -> Vec<DemoCase> {
    lines("demo/cases.jsonl").map(|line| text_case(&line)).collect()
}

/// The demo model, as the bytes of its file.
pub fn demo_model() -> Vec<u8> {
    rullama_demo::gguf()
}

/// Cases with small images and audio clips, for the evaluation.
///
/// # Panics
/// If a file in `goldens/` is broken.
pub fn demo_media() -> Vec<DemoCase> {
    let files = golden("demo/eval.bin");
    let number = |line: &Value, name: &str| line[name].as_u64().expect("a number") as usize;
    let file = |line: &Value| {
        let (offset, length) = (number(line, "offset"), number(line, "length"));
        (kind(word(&line["kind"])), files[offset..offset + length].to_vec())
    };
    lines("demo/eval.jsonl").map(|line| media_case(&line, file(&line))).collect()
}

/// A few cases with images and audio clips in separate files, for the end-to-end tests.
///
/// # Panics
/// If a file in `goldens/` is broken.
pub fn demo_fixtures() -> Vec<DemoCase> {
    let file = |line: &Value| {
        let name = word(&line["file"]);
        let kind = if name.ends_with(".png") { FileKind::Image } else { FileKind::Audio };
        (kind, golden(&format!("demo/{name}")))
    };
    lines("demo/media.jsonl").map(|line| media_case(&line, file(&line))).collect()
}

impl DemoCase {
    /// The text of a case with a file; empty in other cases.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// Whether an answer is right, including its thinking.
    pub fn right(&self, answer: &DemoAnswer) -> bool {
        answer.thought == self.conversation.thinking && passes(&self.check, answer)
    }

    /// The conversation after the right tool call and its result; `None` if no tool is to be called.
    pub fn after_call(&self) -> Option<Self> {
        let (call, result) = (&self.check["value"], self.result.as_ref()?);
        let name = word(&call["name"]);
        let mut call_message = Message::new("assistant", "");
        call_message.tool_calls =
            vec![ToolCall { id: None, name: name.into(), arguments: call["arguments"].clone() }];
        call_message.reasoning = self.conversation.thinking.then(|| format!("I call {name}."));
        let mut result_message = Message::new("tool", word(result));
        result_message.name = Some(name.into());
        let mut conversation = self.conversation.clone();
        conversation.messages.extend([call_message, result_message]);
        let check = json!({ "kind": "contains", "value": self.check["then"] });
        Some(Self {
            skill: "tool results".into(),
            conversation,
            check,
            result: None,
            ..self.clone()
        })
    }
}

fn lines(name: &str) -> impl Iterator<Item = Value> {
    let text = String::from_utf8(golden(name)).expect("text");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    lines.into_iter()
}

fn word(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn kind(name: &str) -> FileKind {
    match name {
        "image" => FileKind::Image,
        "audio" => FileKind::Audio,
        other => panic!("a file of kind {other}"),
    }
}

fn text_case(line: &Value) -> DemoCase {
    let conversation = Conversation::from_json(&line.to_string()).expect("a conversation");
    let thinking = if conversation.thinking { ", thinking" } else { "" };
    DemoCase {
        skill: format!("{}{thinking}", word(&line["skill"])),
        conversation,
        file: None,
        question: String::new(),
        check: line["check"].clone(),
        result: line.get("result").cloned(),
    }
}

fn media_case(line: &Value, file: (FileKind, Vec<u8>)) -> DemoCase {
    let part = match file.0 {
        FileKind::Image => "image",
        FileKind::Audio => "audio",
    };
    let content = json!([{ "type": part }, { "type": "text", "text": line["question"] }]);
    let messages = json!({ "messages": [{ "role": "user", "content": content }] });
    DemoCase {
        skill: word(&line["skill"]).into(),
        conversation: Conversation::from_json(&messages.to_string()).expect("a conversation"),
        file: Some(file),
        question: word(&line["question"]).into(),
        check: line["check"].clone(),
        result: None,
    }
}

fn passes(check: &Value, answer: &DemoAnswer) -> bool {
    let (text, value) = (answer.text.trim(), &check["value"]);
    match word(&check["kind"]) {
        "number" => last_number(text) == value.as_i64(),
        "letters" => {
            let letters = text.to_lowercase();
            let letters: String = letters.chars().filter(char::is_ascii_lowercase).collect();
            letters == word(value)
        }
        "contains" => {
            let text = text.to_lowercase();
            words(value).all(|part| text.contains(&part.to_lowercase()))
        }
        "story" => sentences(text) == 3 && words(value).all(|part| has_word(text, part)),
        "call" => {
            let wanted = (word(&value["name"]), value["arguments"].as_object());
            matches!(&answer.calls[..], [(name, arguments)] if (name.as_str(), Some(arguments)) == wanted)
        }
        other => panic!("a check of kind {other}"),
    }
}

fn words(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().expect("texts").iter().map(word)
}

fn last_number(text: &str) -> Option<i64> {
    let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = text[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| {
        let minus = text[at..].starts_with('-');
        if minus { at } else { at + text[at..].chars().next().map_or(1, char::len_utf8) }
    });
    text[start..end].parse().ok()
}

/// Number of sentences: full stops and the like before a space or the end.
fn sentences(text: &str) -> usize {
    let ends = |(at, c): (usize, char)| {
        matches!(c, '.' | '!' | '?')
            && text[at + 1..].chars().next().is_none_or(char::is_whitespace)
    };
    text.char_indices().filter(|position| ends(*position)).count()
}

fn has_word(text: &str, wanted: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| word == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> DemoAnswer {
        DemoAnswer { text: text.into(), ..DemoAnswer::default() }
    }

    #[test]
    fn answers_are_judged() {
        let check = |kind: &str, value: Value, text: &str| {
            passes(&json!({ "kind": kind, "value": value }), &answer(text))
        };
        assert!(check("number", json!(-7), "3 - 10 = -7"));
        assert!(!check("number", json!(7), "3 - 10 = -7"));
        assert!(!check("number", json!(7), "none"));
        assert!(check("letters", json!("yad"), "Y-a-d"));
        assert!(check("contains", json!(["two", "Red"]), "Two red squares."));
        assert!(!check("contains", json!(["two", "blue"]), "Two red squares."));
        assert!(check("story", json!(["fox", "tree"]), "A fox ran. It saw a tree. The end!"));
        assert!(!check("story", json!(["fox", "tree"]), "A fox ran. It saw trees. The end!"));
        assert!(!check("story", json!(["fox", "tree"]), "A fox ran to a tree."));
    }

    #[test]
    fn thinking_must_match_the_setting() {
        let case = demo_cases().into_iter().find(|case| case.conversation.thinking);
        let case = case.expect("some think");
        assert!(!case.right(&answer("whatever")));
    }

    #[test]
    fn calls_are_compared_whole() {
        let case = demo_cases().into_iter().find(|case| case.result.is_some());
        let case = case.expect("some call tools");
        let value = &case.check["value"];
        let call = (
            word(&value["name"]).to_owned(),
            value["arguments"].as_object().expect("arguments").clone(),
        );
        let thought = case.conversation.thinking;
        assert!(case.right(&DemoAnswer { thought, calls: vec![call.clone()], ..answer("") }));
        assert!(!case.right(&DemoAnswer {
            thought,
            calls: vec![call.clone(), call],
            ..answer("")
        }));
        let after = case.after_call().expect("a result follows");
        assert_eq!(after.conversation.messages.len(), case.conversation.messages.len() + 2);
    }

    #[test]
    fn every_file_is_at_its_offset() {
        for case in demo_media().iter().chain(&demo_fixtures()) {
            let (kind, bytes) = case.file.as_ref().expect("a file");
            let image = bytes.starts_with(b"\x89PNG");
            assert_eq!(image, *kind == FileKind::Image, "{case:?}");
        }
    }
}
