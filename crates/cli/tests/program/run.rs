//! Replies and chats.

use serde_json::json;
use tempfile::TempDir;

use crate::{
    models::{FileInFolder, MICRO, TINY, golden_arg},
    program::{Program, has, rullama},
    store::Store,
};

fn run(flags: &[&str]) -> Program {
    let model = golden_arg(MICRO);
    rullama(["run", &model, "--device", "cpu", "-n", "12", "--ctx", "256"]).and(flags)
}

#[test]
fn a_seed_gives_the_same_reply_every_time() {
    let reply = |seed: &str| run(&["--seed", seed, "Hello"]).stdout();
    let first = reply("1");
    assert!(first.len() > 2 && first.ends_with('\n'), "{first:?}");
    assert_eq!(reply("1"), first);
    assert_ne!(reply("2"), first);
}

#[test]
fn greedy_output_is_the_same_on_every_device() {
    let greedy = run(&["--temperature", "0", "--cache", "f32", "Hello"]).stdout();
    let model = golden_arg(MICRO);
    let gpu = rullama(["run", &model, "--device", "gpu", "-n", "12", "--ctx", "256"])
        .and(["--temperature", "0", "--cache", "f32", "Hello"])
        .stdout();
    assert_eq!(gpu, greedy);
}

#[test]
fn prompts_come_from_arguments_and_pipes() {
    let argument = run(&["--seed", "1", "one two three"]).stdout();
    assert_eq!(run(&["--seed", "1", "one", "two", "three"]).stdout(), argument);
    assert_eq!(run(&["--seed", "1"]).stdin("one two three").stdout(), argument);
    assert_eq!(run(&["--seed", "1", "two three"]).stdin("one").stdout(), argument);
    assert_ne!(run(&["--seed", "1", "--raw", "one two three"]).stdout(), argument);
    assert_ne!(run(&["--seed", "1", "--system", "Be brief.", "one two three"]).stdout(), argument);
    has(&run(&[]).fails(1), &["give a prompt"]);
}

#[test]
fn verbose_prints_timings() {
    let outcome = run(&["--verbose", "--seed", "1", "Hello"]).run();
    assert_eq!(outcome.code, Some(0));
    for line in [
        "total duration:",
        "load duration:",
        "prompt eval count:",
        "prompt eval duration:",
        "prompt eval rate:",
        "eval count:           12 token(s)",
        "eval duration:",
        "eval rate:",
        "gpu memory:           0 B",
        "host memory:",
    ] {
        assert!(outcome.stderr.lines().any(|found| found.starts_with(line)), "{}", outcome.stderr);
    }
}

#[test]
fn a_reply_as_json() {
    let reply = run(&["--json", "--seed", "1", "Hello"]).json();
    assert_eq!(
        reply["text"].as_str().unwrap().to_owned() + "\n",
        run(&["--seed", "1", "Hello"]).stdout()
    );
    assert_eq!((&reply["finish"], &reply["answer_tokens"]), (&json!("length"), &json!(12)));
    assert!(reply["prompt_tokens"].as_u64().unwrap() > 5);
}

#[test]
fn stops_and_options() {
    let whole = run(&["--seed", "1", "Hello"]).stdout();
    let stop: String = whole.chars().skip(3).take(2).collect();
    let cut = run(&["--seed", "1", "--stop", &stop, "Hello"]).stdout();
    assert_eq!(cut.trim_end_matches('\n'), whole.split(&stop).next().unwrap());
    let penalised = ["--option", "dry_multiplier=5", "--option", "xtc_probability=1"];
    assert_ne!(run(&["--seed", "1", "Hello"]).and(penalised).stdout(), whole);
    has(&run(&["--option", "temprature=1", "x"]).fails(1), &["unknown option temprature"]);
    has(&run(&["--option", "top_p=much", "x"]).fails(1), &["top_p"]);
}

#[test]
fn a_full_context_is_reported() {
    let model = golden_arg(MICRO);
    let outcome =
        rullama(["run", &model, "--device", "cpu", "--seed", "1", "--ctx", "24", "Hi"]).run();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    has(&outcome.stderr, &["context of 24 tokens is full", "--ctx"]);
    let error = rullama(["run", &model, "--device", "cpu", "--ctx", "8", "Hi there, you"]).fails(1);
    has(&error, &["context holds 8", "raise the context"]);
    let error = rullama(["run", &model, "--device", "cpu", "--ctx", "999999999", "Hi"]).fails(1);
    has(&error, &["999999999", "not possible"]);
}

#[test]
fn the_store_sets_defaults_that_flags_replace() {
    let store = Store::empty();
    let add = |name: &str, params: &str, system: Option<&str>| {
        let mut layers =
            vec![store.blob("model", rullama_testkit::golden(MICRO)), store.blob("params", params)];
        layers.extend(system.map(|text| store.blob("system", text)));
        let config = store.blob("config", r#"{"model_format":"gguf"}"#);
        store.manifest(name, &json!({ "config": config, "layers": layers }));
    };
    add("plain", "{}", None);
    add("short", r#"{"num_predict":3,"temperature":0,"num_ctx":128,"odd":1}"#, None);
    add("strict", "{}", Some("Be brief."));
    let reply = |flags: &[&str]| {
        store.rullama(&["run", "--device", "cpu", "--seed", "1", "--json"]).and(flags).run()
    };
    let tokens = |flags: &[&str]| {
        let outcome = reply(flags);
        let value: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        (value["prompt_tokens"].as_u64().unwrap(), value["answer_tokens"].as_u64().unwrap())
    };
    assert_eq!(tokens(&["short", "Hi"]).1, 3);
    assert_eq!(tokens(&["short", "Hi", "-n", "5"]).1, 5);
    has(&reply(&["short", "Hi"]).stderr, &["unknown option \"odd\""]);
    assert!(tokens(&["strict", "Hi", "-n", "1"]).0 > tokens(&["plain", "Hi", "-n", "1"]).0);
}

#[test]
fn a_chat_through_a_pipe() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kept");
    let file = file.to_str().unwrap();
    let lines = format!(
        "/set parameter temperature 0\n\"\"\"one\ntwo\"\"\"\n/sing\n/show info\n/save {file}\n/clear\n/load {file}\n/load {file}.no\n/bye\nnever\n"
    );
    let outcome = run(&["--chat", "--seed", "1"]).stdin(lines).run();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    has(&outcome.stdout, &["Set temperature to 0", "256 tokens", "messages       2"]);
    has(&outcome.stdout, &["Saved to", "Conversation cleared", "Loaded 2 messages"]);
    has(&outcome.stderr, &["unknown command /sing", "kept.no"]);
    let other = golden_arg(TINY);
    let outcome = rullama(["run", &other, "--device", "cpu", "--chat"])
        .stdin(format!("/load {file}\n"))
        .run();
    has(&outcome.stderr, &["belongs to another model", "micro-e2b"]);
}

#[test]
fn replies_are_constrained_to_json() {
    let model = golden_arg(MICRO);
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":9},"ok":{"type":"boolean"}},"required":["n","ok"],"additionalProperties":false}"#;
    let file = FileInFolder::new("schema.json", schema);
    let reply = |format: &str| {
        rullama(["run", &model, "--device", "cpu", "-n", "200", "--ctx", "256", "--seed", "4"])
            .and(["--format", format, "Hello"])
            .stdout()
    };
    let text = reply(schema);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!((1..=9).contains(&value["n"].as_i64().unwrap()) && value["ok"].is_boolean(), "{text}");
    assert_eq!(reply(file.arg()), text);
    assert!(reply("json").starts_with('{'));
    let outcome = run(&["--chat", "--seed", "1"])
        .stdin(format!("/set format {schema}\nHello\n/set noformat\n/set format {{}}}}\n"))
        .run();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let second_line = outcome.stdout.lines().nth(1).unwrap_or_default();
    assert!(outcome.stdout.starts_with("Replies are constrained to JSON.\n{"), "{second_line}");
    has(&outcome.stdout, &["Replies are not constrained."]);
    has(&outcome.stderr, &["not valid JSON"]);
    has(&run(&["--format", "yaml", "x"]).fails(2), &["give `json`", "yaml"]);
    let error = run(&["--format", r#"{"type":"objet"}"#, "x"]).fails(1);
    has(&error, &["this JSON schema is not supported", "objet"]);
}

#[test]
fn conflicting_flags() {
    for flags in [
        &["--think", "--no-think"][..],
        &["--raw", "--think"],
        &["--chat", "--json"],
        &["--device", "tpu"],
        &["--gpu-memory", "much"],
        &["--cache", "q4"],
    ] {
        has(&run(flags).fails(2), &["--help"]);
    }
}

/// Ollama's spellings.
#[test]
fn flags_of_ollama_are_understood() {
    let args = ["run", "demo", "What is 23 + 45?", "--temperature", "0", "--device", "cpu"];
    for flags in [&["--think=false"][..], &["--hidethinking"], &["--keepalive", "5m"]] {
        has(&rullama(args).and(flags).stdout(), &["68"]);
    }
    has(&rullama(args).and(["--think=deeply"]).fails(2), &["true, false"]);
    has(&rullama(args).and(["--keepalive", "soon"]).fails(2), &["10m"]);
}

#[test]
fn a_prompt_without_a_model_gets_a_hint() {
    let hint = r#"did you mean `rullama run demo "What is 23 + 45?"`"#;
    has(&Store::empty().rullama(&["run", "What is 23 + 45?"]).fails(1), &[hint]);
    let hint = r#"did you mean `rullama run demo "What?!"`"#;
    has(&Store::empty().rullama(&["run", "What?!"]).fails(1), &[hint]);
    // What may be a name is one that was not pulled yet.
    for args in [&["run", "gemma4:e2b"][..], &["run", "gemma4:e2b", "Hello"]] {
        let error = Store::empty().rullama(args).fails(3);
        has(&error, &["no model gemma4:e2b", "`rullama pull gemma4:e2b`"]);
        assert!(!error.contains("did you mean"), "{error}");
    }
}
