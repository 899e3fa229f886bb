//! The model that comes with the program.

use rullama_testkit::golden;
use serde_json::Value;

use crate::{models::golden_arg, program::has, store::Store};

fn answer(prompt: &str) -> String {
    let store = Store::empty();
    store.rullama(&["run", "demo", "--device", "cpu", prompt]).stdout()
}

#[test]
fn it_answers_what_it_was_taught() {
    has(&answer("What is 23 + 45?"), &["68"]);
    has(&answer("What is the capital of France?"), &["Paris"]);
    has(&answer("Hello!"), &["Demo"]);
}

#[test]
fn it_is_what_answers_where_no_model_is_named() {
    let store = Store::empty();
    let said = store.rullama(&["run", "--device", "cpu"]).stdin("What is 12 + 30?").stdout();
    has(&said, &["42"]);
}

#[test]
fn it_can_be_looked_at() {
    let store = Store::empty();
    has(&store.rullama(&["show", "demo"]).stdout(), &["inside this program", "gemma4"]);
    has(&store.rullama(&["show", "demo", "--json"]).stdout(), &["built in"]);
    has(&store.rullama(&["verify", "demo"]).stdout(), &["ok"]);
}

/// The share of what it should say about held-out pictures and sounds that it must say; how well it does is in the tool's README.
const MARK: f64 = 0.6;

/// How many of the things a case asks for an answer says, and how many there are.
fn said_of(said: &str, check: &Value) -> (usize, usize) {
    let said = said.to_lowercase();
    match check["kind"].as_str() {
        Some("contains") => {
            let parts = check["value"].as_array().unwrap();
            let found = parts.iter().filter(|part| said.contains(part.as_str().unwrap()));
            (found.count(), parts.len())
        }
        Some("number") => {
            let mut numbers =
                said.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
            let last = numbers.next_back().and_then(|number| number.parse().ok());
            (usize::from(last == check["value"].as_i64()), 1)
        }
        kind => panic!("cases of kind {kind:?} are not known"),
    }
}

#[test]
fn it_sees_and_hears() {
    let (cases, store) = (golden("demo/media.jsonl"), Store::empty());
    let cases = String::from_utf8(cases).unwrap();
    for (suffix, flag) in [(".png", "--image"), (".wav", "--audio")] {
        let (mut right, mut all, mut answers) = (0, 0, String::new());
        for case in cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let file = case["file"].as_str().unwrap();
            if !file.ends_with(suffix) {
                continue;
            }
            let (path, question) = (golden_arg(&format!("demo/{file}")), &case["question"]);
            let run = ["run", "demo", "--device", "cpu", "--image-budget", "70", flag, &path];
            let said = store.rullama(&run).and([question.as_str().unwrap()]).stdout();
            let (found, wanted) = said_of(&said, &case["check"]);
            (right, all) = (right + found, all + wanted);
            answers += &format!("{file}: {said}");
        }
        assert!(right as f64 >= MARK * all as f64, "{right} of {all}:\n{answers}");
    }
}
