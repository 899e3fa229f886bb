//! The native renderer against the original templates themselves, run by the sandbox's interpreter.
#![cfg(feature = "jinja")]

use proptest::prelude::*;
use rullama_chat::{
    Conversation, Family, Limits, TemplateKind, recognise, render, render_template,
};
use rullama_testkit::golden;
use serde_json::{Value, json};

/// A turn marker that makes a template foreign, so that it is run instead of recognised.
const FOREIGN_TURN: &str = "<#turn>";

fn check(conversation: &Conversation) -> Result<(), TestCaseError> {
    for (name, family) in [("E2B", Family::Small), ("31B", Family::Large)] {
        let file = format!("chat-template/google-gemma-4-{name}-it.2026-07-09.jinja");
        let template =
            String::from_utf8(golden(&file)).expect("UTF-8").replace("<|turn>", FOREIGN_TURN);
        prop_assert_eq!(recognise(&template), TemplateKind::Foreign);
        let original = render_template(&template, conversation, &Limits::default());
        let original = original.map(|prompt| prompt.text().replace(FOREIGN_TURN, "<|turn>"));
        let native = render(conversation, family).map(|prompt| prompt.text());
        match (original, native) {
            (Ok(original), Ok(native)) => prop_assert_eq!(native, original),
            (Err(_), _) => {}
            (Ok(original), Err(error)) => prop_assert!(false, "{}: {}", error, original),
        }
    }
    Ok(())
}

#[test]
fn golden_conversations() {
    for file in ["chat-template/golden.jsonl", "chat-template/more.jsonl"] {
        for line in String::from_utf8(golden(file)).unwrap().lines() {
            check(&Conversation::from_json(line).unwrap()).unwrap();
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    let texts = [
        "",
        " a ",
        "b\n",
        "<|channel>t<channel|>c",
        "<turn|>",
        "<|\"|>",
        "É it's",
        "\u{1c}\u{a0}d",
        "{\"k\": 1}",
    ];
    prop::sample::select(texts.map(String::from).to_vec())
}

fn key() -> impl Strategy<Value = String> {
    let keys = [
        "a",
        "A",
        "b",
        "type",
        "Type",
        "properties",
        "required",
        "items",
        "description",
        "enum",
        "nullable",
        "é",
    ];
    prop::sample::select(keys.map(String::from).to_vec())
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        text().prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

/// A schema: mostly of the usual shape, with anything as its parts.
fn schema() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        json!("string"),
        json!("integer"),
        json!("array"),
        json!("object"),
        json!(["string", "null"]),
        json!(null),
    ]);
    let leaf = kind.clone().prop_map(|kind| json!({ "type": kind }));
    leaf.prop_recursive(3, 10, 3, move |inner| {
        let properties = prop::collection::vec((key(), inner.clone()), 0..4);
        (kind.clone(), properties, inner, prop::collection::vec((key(), any_json()), 0..3))
            .prop_map(|(kind, properties, items, others)| {
                let properties: Value = properties.into_iter().collect();
                let mut schema: Value = others.into_iter().collect();
                schema["type"] = kind;
                schema["properties"] = properties;
                schema["items"] = items;
                schema
            })
    })
}

fn content() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["text", "image", "input_audio", "video", "other"]);
    let part = (kind, text()).prop_map(|(kind, text)| json!({ "type": kind, "text": text }));
    prop_oneof![
        4 => text().prop_map(Value::from),
        2 => prop::collection::vec(part, 0..3).prop_map(Value::from),
        1 => Just(json!(null)),
        1 => Just(json!(5)),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    let roles = vec![
        "user",
        "user",
        "assistant",
        "assistant",
        "tool",
        "tool",
        "system",
        "developer",
        "other",
    ];
    let id = prop::sample::select(vec![json!("1"), json!("2"), json!(null)]);
    let arguments = prop::collection::vec((key(), any_json()), 0..4).prop_map(Value::from_iter);
    let call = (id.clone(), arguments).prop_map(
        |(id, arguments)| json!({ "id": id, "function": { "name": "f", "arguments": arguments } }),
    );
    let calls = prop::collection::vec(call, 0..3);
    (prop::sample::select(roles), content(), calls, id, text()).prop_map(|(role, content, calls, id, thought)| {
        let calls = if role == "assistant" { calls } else { Vec::new() };
        json!({ "role": role, "content": content, "tool_calls": calls, "tool_call_id": id, "reasoning": thought })
    })
}

fn conversation() -> impl Strategy<Value = Conversation> {
    let tool = (text(), schema()).prop_map(|(description, parameters)| {
        json!({ "function": { "name": "f", "description": description, "parameters": parameters } })
    });
    let tools = prop::collection::vec(tool, 0..2);
    (prop::collection::vec(message(), 0..6), tools, any::<[bool; 3]>()).prop_map(
        |(messages, tools, flags)| {
            let [thinking, preserve_thinking, add_generation_prompt] = flags;
            serde_json::from_value(json!({
            "messages": messages, "tools": tools, "thinking": thinking,
            "preserve_thinking": preserve_thinking, "add_generation_prompt": add_generation_prompt,
        }))
        .expect("a conversation")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_conversations(conversation in conversation()) {
        check(&conversation)?;
    }
}
