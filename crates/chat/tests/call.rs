//! The grammar of tool calls and the repairs of malformed ones.

use proptest::prelude::*;
use rullama_chat::{ChatError, Tool, parse_call};
use serde_json::{Value, json};

/// A tool `f` whose parameters have the given types.
fn tool(parameters: &[(&str, Value)]) -> Tool {
    let properties: serde_json::Map<_, _> = parameters
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })))
        .collect();
    serde_json::from_value(
        json!({ "function": { "name": "f", "parameters": { "properties": properties } } }),
    )
    .expect("a tool")
}

fn check(text: &str, name: &str, arguments: Value) {
    check_with(&[], text, name, arguments);
}

fn check_with(tools: &[Tool], text: &str, name: &str, arguments: Value) {
    let call = parse_call(text, tools).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!((call.name.as_str(), Value::Object(call.arguments)), (name, arguments), "{text}");
}

fn check_refused(tools: &[Tool], text: &str) {
    if let Ok(call) = parse_call(text, tools) {
        panic!("{text} was read as {call:?}");
    }
}

#[test]
fn strict_calls() {
    check("call:f{}", "f", json!({}));
    check(
        "call:f{a:1,b:-2.5,c:true,d:null}",
        "f",
        json!({"a": 1, "b": -2.5, "c": true, "d": null}),
    );
    check("call:f{a:false,b:1e3,c:-0.5E-2}", "f", json!({"a": false, "b": 1000.0, "c": -0.005}));
    check(r#"call:f{s:<|"|>he said "hi"\n<|"|>}"#, "f", json!({"s": "he said \"hi\"\\n"}));
    check(r#"call:f{p:<|"|>C:\users<|"|>}"#, "f", json!({"p": "C:\\users"}));
    check(r#"call:f{o:{k:[<|"|>x<|"|>,{z:1}]}}"#, "f", json!({"o": {"k": ["x", {"z": 1}]}}));
    check(r#"call:f{t:<|"|>a,b:{c}<|"|>}"#, "f", json!({"t": "a,b:{c}"}));
    check("call:f{code:<|\"|>line1\nline2<|\"|>}", "f", json!({"code": "line1\nline2"}));
    check("call:f{ a : 1 , b : [ ] }", "f", json!({"a": 1, "b": []}));
    check(" call:f {\n\ta:\n1\n}\n", "f", json!({"a": 1}));
    check(r#"call:ns.tool-name_2{x:<|"|><|"|>}"#, "ns.tool-name_2", json!({"x": ""}));
    check(r#"call:f{u:<|"|>snowman:\u2603<|"|>}"#, "f", json!({"u": "snowman:\\u2603"}));
    check(
        "call:f{e:[\n{ newText:<|\"|>a<|\"|>, oldText:<|\"|>b<|\"|>} ]}",
        "f",
        json!({"e": [{"newText": "a", "oldText": "b"}]}),
    );
    check(
        r#"call:f{count:<|"|>5<|"|>,j:<|"|>{"k":1}<|"|>}"#,
        "f",
        json!({"count": "5", "j": "{\"k\":1}"}),
    );
    check(
        "call:f{n:9223372036854775807,m:18446744073709551615}",
        "f",
        json!({"n": i64::MAX, "m": u64::MAX}),
    );
    check("call:f{a:1,a:2}", "f", json!({"a": 2}));
}

#[test]
fn keys_of_all_kinds() {
    check(r#"call:f{<|"|>a b<|"|>:1,"c\"d":2,e f:3}"#, "f", json!({"a b": 1, "c\"d": 2, "e f": 3}));
    check(
        "call:f{Basic Chain:{main:[]}, 节点 名称 :1}",
        "f",
        json!({"Basic Chain": {"main": []}, "节点 名称": 1}),
    );
    check("call:f{display\tname:1}", "f", json!({"display\tname": 1}));
    check_refused(&[], "call:f{ \t :1}");
    check_refused(&[], "call:f{a}");
    check_refused(&[], "call:f{a:1,}");
}

#[test]
fn other_quotes_are_accepted() {
    check(
        r#"call:f{q:"raw \"x\"",n:<|"|>g "y"<|"|>}"#,
        "f",
        json!({"q": "raw \"x\"", "n": "g \"y\""}),
    );
    check(r#"call:f{q:"keep , oldText: literal"}"#, "f", json!({"q": "keep , oldText: literal"}));
    check("call:f{\"k\":\"\\u2603\\n\",l:[\"a\nb\"]}", "f", json!({"k": "☃\n", "l": ["a\nb"]}));
    check("call:f{p:':\\s*\\w+',n:1}", "f", json!({"p": ":\\s*\\w+", "n": 1}));
    check("call:f{p:'abc'<|\"|>}", "f", json!({"p": "abc"}));
    check(
        "call:f{i:<|\"|>*.py<|\"|>,p:'a',q:<|\"|>/tmp<|\"|>}",
        "f",
        json!({"i": "*.py", "p": "a", "q": "/tmp"}),
    );
    check_refused(&[], "call:f{p:'abc}");
    check_refused(&[], r#"call:f{p:"C:\users"}"#);
}

#[test]
fn the_last_string_may_be_unclosed() {
    check("call:f{s:<|\"|>abc}", "f", json!({"s": "abc"}));
    check("call:f{p:<|\"|>/tmp<|\"|>,c:<|\"|>ls}", "f", json!({"p": "/tmp", "c": "ls"}));
    check("call:f{s:<|\"|>abc", "f", json!({"s": "abc"}));
    check("call:f{s:<|\"|>fn(){}}", "f", json!({"s": "fn(){}"}));
    check("call:f{l:[<|\"|>a<|\"|>,<|\"|>b]}", "f", json!({"l": ["a", "b"]}));
    check("call:f{o:{s:<|\"|>abc} }", "f", json!({"o": {"s": "abc"}}));
    check("call:f{o:{s:<|\"|>abc}", "f", json!({"o": {"s": "abc"}}));
    check("call:f{s:\"abc}", "f", json!({"s": "abc"}));
    check_refused(&[], "call:f{first:<|\"|>one,second:<|\"|>two<|\"|>}");
}

#[test]
fn a_missing_brace_is_accepted_only_with_another_repair() {
    check("call:f{s:\"abc\"", "f", json!({"s": "abc"}));
    check("call:f{n:1,s:'abc'", "f", json!({"n": 1, "s": "abc"}));
    check_refused(&[], "call:f{n:1");
    check_refused(&[], "call:f{s:<|\"|>abc<|\"|>");
    check_refused(&[], "call:f{");
    check_refused(&[], "call:f{o:{s:'abc'");
}

#[test]
fn bare_text_for_declared_strings() {
    let tools =
        [tool(&[("content", json!("string")), ("mode", json!("string")), ("n", json!("number"))])];
    check_with(
        &tools,
        "call:f{content:hello,mode:<|\"|>x<|\"|>}",
        "f",
        json!({"content": "hello", "mode": "x"}),
    );
    check_with(
        &tools,
        "call:f{content:a, b: c, mode :d}",
        "f",
        json!({"content": "a, b: c", "mode": "d"}),
    );
    check_with(&tools, "call:f{content:\n\n# Title", "f", json!({"content": "\n\n# Title"}));
    check_with(&tools, "call:f{content:x{y}}", "f", json!({"content": "x{y}"}));
    check_with(&tools, "call:f{content:tomorrow,n:1}", "f", json!({"content": "tomorrow", "n": 1}));
    check_refused(&tools, "call:f{n:hello}");
    check_refused(&tools, "call:f{other:hello}");
    check_refused(&tools, "call:g{content:hello}");
    check_refused(&tools, "call:f{content:true story}");
    check_refused(&tools, "call:f{content:12 monkeys}");
    check_refused(&tools, "call:f{o:{content:hello}}");
    check_refused(&[], "call:f{content:hello}");
    let nullable = [tool(&[("s", json!(["null", "STRING"]))])];
    check_with(&nullable, "call:f{s:hello}", "f", json!({"s": "hello"}));
}

#[test]
fn control_markers_around_a_call_are_ignored() {
    check("<|tool_call>call:f{}", "f", json!({}));
    check("call:f{s:<|\"|>abc}<|tool_response>\n", "f", json!({"s": "abc"}));
}

#[test]
fn malformed_calls_are_rejected() {
    for text in [
        "",
        "call:",
        "call:f",
        "call:{}",
        "f{}",
        "{}",
        "call:f{}}",
        "call:f{a:01}",
        "call:f{a:1e999}",
        "call:f{a:-}",
    ] {
        check_refused(&[], text);
    }
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| format!("call:f{{a:{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse_call(&nested(63), &[]).is_ok());
    assert!(matches!(parse_call(&nested(64), &[]), Err(ChatError::CallTooDeep { limit: 64 })));
    assert!(matches!(parse_call(&nested(1_000_000), &[]), Err(ChatError::CallTooDeep { .. })));
}

#[test]
fn long_malformed_calls_take_linear_time() {
    let tools = [tool(&[("content", json!("string")), ("mode", json!("string"))])];
    for piece in [",", ", ", "\"", "'", "<|\"|>", "{", "a:", "a:'", ":"] {
        // Quadratic parsing of this would take minutes.
        let _ = parse_call(&format!("call:f{{content:{}", piece.repeat(400_000)), &tools);
    }
}

const PIECES: [&str; 20] = [
    "call:f", "{", "}", "[", "]", ",", ":", "<|\"|>", "\"", "'", "a", "b:", "1", "-", "tr", "null",
    " ", "\\", "é", "<|tool",
];

/// Text assembled from fragments of calls.
fn call_like() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24).prop_map(|list| list.concat())
}

proptest! {
    #[test]
    fn call_like_text_never_panics(text in call_like(), prefix in prop::bool::ANY) {
        let tools = [tool(&[("a", json!("string")), ("b", json!("string"))])];
        let text = if prefix { format!("call:f{{{text}") } else { text };
        let _ = parse_call(&text, &tools);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*") {
        let _ = parse_call(&format!("call:f{{{text}}}"), &[]);
    }
}
