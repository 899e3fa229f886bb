//! Rendering against the output of the original templates.

use rullama_chat::{Conversation, Family, render};
use rullama_testkit::golden;
use serde_json::Value;

fn check_file(name: &str, at_least: usize) {
    let cases = String::from_utf8(golden(name)).expect("UTF-8");
    let mut count = 0;
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let conversation = Conversation::from_json(line).expect("a conversation");
        for (family, key) in [(Family::Small, "small"), (Family::Large, "large")] {
            let prompt = render(&conversation, family).expect("a prompt");
            assert_eq!(
                prompt.text(),
                case[key].as_str().expect("the expected text"),
                "{} ({key})",
                case["name"]
            );
            assert_eq!(prompt.to_string(), prompt.text());
            let neighbours_differ =
                prompt.spans().windows(2).all(|pair| pair[0].trusted != pair[1].trusted);
            assert!(neighbours_differ && prompt.spans().iter().all(|span| !span.text.is_empty()));
        }
        count += 1;
    }
    assert!(count >= at_least, "{name} has only {count} cases");
}

#[test]
fn golden_cases() {
    check_file("chat-template/golden.jsonl", 140);
}

/// Edge cases of the templates and random conversations: see `tools/chat-cases`.
#[test]
fn more_cases() {
    check_file("chat-template/more.jsonl", 110);
}
