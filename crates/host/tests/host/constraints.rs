//! Grammars, expressions, tool calls with thoughts, and limits of thinking.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::server::{Running, request};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| Running::start(|_| {}))
}

fn content(reply: &Value) -> String {
    reply["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

#[test]
fn grammars_and_expressions_hold() {
    let ask = |more: Value| content(&server().chat("What is 23 + 45?", more));
    let gbnf = "root ::= \"<\" digit{1,3} \">\"\ndigit ::= [0-9]\n";
    let text = ask(json!({ "grammar": gbnf }));
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or_default();
    assert!(!inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    let lark = "%llguidance {}\nstart: \"sum: \" /[0-9]{2}/\n";
    let text = ask(json!({ "grammar": lark }));
    assert!(text.starts_with("sum: ") && text.len() == 7, "{text}");
    let text = ask(json!({ "guided_regex": "[A-F]{3}" }));
    assert!(text.len() == 3 && text.bytes().all(|byte| (b'A'..=b'F').contains(&byte)), "{text}");
    let text = ask(json!({ "guided_choice": ["left", "right"] }));
    assert!(["left", "right"].contains(&text.as_str()), "{text}");
    for (more, part) in [
        (json!({ "grammar": "root ::= nobody" }), "there is no rule `nobody`"),
        (json!({ "guided_regex": "(" }), "this regular expression is not supported"),
        (json!({ "guided_regex": "a", "guided_choice": ["b"] }), "only one of"),
    ] {
        let (status, text) = server().send("/v1/chat/completions", &request("?", more));
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &error["error"]["type"]), (400, &json!("invalid_request_error")));
        assert!(error["error"]["message"].as_str().unwrap().contains(part), "{text}");
    }
}

#[test]
fn arguments_match_the_schema() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "maxLength": 20 },
            "days": { "type": "integer", "minimum": 1, "maximum": 5 },
            "unit": { "enum": ["C", "F"] },
            "place": { "type": "object", "properties": { "high": { "type": "boolean" } }, "required": ["high"] },
        },
        "required": ["city", "days", "unit", "place"],
    });
    let tool =
        json!({ "type": "function", "function": { "name": "weather", "parameters": parameters } });
    for (seed, effort) in (0..).zip(["none", "none", "low"]) {
        // Hot: what the schema does not forbid may come.
        let more = json!({
            "tools": [tool], "tool_choice": "required", "temperature": 1.5, "seed": seed, "max_tokens": 300,
            "reasoning_effort": effort,
        });
        let reply = server().chat("What is the weather in Oslo?", more);
        let choice = &reply["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{reply}");
        let call = &choice["message"]["tool_calls"][0]["function"];
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments["city"].as_str().unwrap().chars().count() <= 20, "{arguments}");
        assert!((1..=5).contains(&arguments["days"].as_i64().unwrap()), "{arguments}");
        assert!(["C", "F"].contains(&arguments["unit"].as_str().unwrap()), "{arguments}");
        assert!(arguments["place"]["high"].is_boolean(), "{arguments}");
        assert_eq!(arguments.as_object().unwrap().len(), 4, "{arguments}");
    }
}

#[test]
fn thoughts_end_at_their_budget() {
    let ask = |budget: u32| {
        let request = json!({
            "model": "demo", "max_tokens": 400, "temperature": 0,
            "messages": [{ "role": "user", "content": "What is 23 + 45?" }],
            "thinking": { "type": "enabled", "budget_tokens": budget },
        });
        let reply = server().post("/v1/messages", &request);
        let thinking = reply["content"][0]["thinking"].as_str().unwrap_or_default().to_owned();
        let count = server().post("/tokenize", &json!({ "model": "demo", "content": thinking }));
        (count["tokens"].as_array().unwrap().len(), reply)
    };
    let (whole, free) = ask(300);
    assert!(whole > 8 && whole < 300, "the demo model ends its thought by itself: {free}");
    for budget in [1, 4] {
        let (tokens, cut) = ask(budget);
        assert!(tokens <= budget as usize, "{cut}");
        let text = cut["content"].as_array().unwrap().iter().find(|block| block["type"] == "text");
        assert!(text.is_some_and(|text| !text["text"].as_str().unwrap().is_empty()), "{cut}");
        assert_eq!(cut["stop_reason"], "end_turn", "{cut}");
    }
    // A level far above what it thinks changes nothing.
    let low = json!({ "model": "demo", "messages": [{ "role": "user", "content": "What is 23 + 45?" }], "stream": false, "think": "low", "options": { "temperature": 0 } });
    let low = server().post("/api/chat", &low);
    assert_eq!(low["message"]["thinking"], free["content"][0]["thinking"]);
    let bad = json!({
        "model": "demo", "max_tokens": 64, "messages": [{ "role": "user", "content": "hi" }],
        "thinking": { "type": "enabled", "budget_tokens": 64 },
    });
    let (status, text) = server().send("/v1/messages", &bad);
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("less than `max_tokens`"), "{text}");
}
