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

/// Of the held-out pictures and sounds, how many it must know; what it should know is in the tool's README.
const MARK: f64 = 0.6;

/// Whether an answer is what a case asks for.
fn passes(said: &str, check: &Value) -> bool {
    let said = said.to_lowercase();
    match check["kind"].as_str() {
        Some("contains") => check["value"]
            .as_array()
            .unwrap()
            .iter()
            .all(|part| said.contains(part.as_str().unwrap())),
        Some("number") => {
            let numbers = said.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
            numbers.last().and_then(|number| number.parse().ok()) == check["value"].as_i64()
        }
        kind => panic!("cases of kind {kind:?} are not known"),
    }
}

#[test]
fn it_sees_and_hears() {
    let (cases, store) = (golden("demo/media.jsonl"), Store::empty());
    let cases = String::from_utf8(cases).unwrap();
    let (mut right, mut all) = ([0, 0], [0, 0]);
    for case in cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let file = golden_arg(&format!("demo/{}", case["file"].as_str().unwrap()));
        let (kind, flag) = if file.ends_with(".wav") { (1, "--audio") } else { (0, "--image") };
        let question = case["question"].as_str().unwrap();
        let run = ["run", "demo", "--device", "cpu", "--image-budget", "70", flag, &file, question];
        let said = store.rullama(&run).stdout();
        all[kind] += 1;
        right[kind] += i32::from(passes(&said, &case["check"]));
    }
    for (kind, what) in ["pictures", "sounds"].into_iter().enumerate() {
        let share = f64::from(right[kind]) / f64::from(all[kind]);
        assert!(share >= MARK, "{} of {} {what}", right[kind], all[kind]);
    }
}
