//! The model that comes with the program.

use rullama_testkit::{DemoAnswer, FileKind, demo_fixtures};
use tempfile::TempDir;

use crate::{program::has, store::Store};

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

#[test]
fn it_sees_and_hears() {
    let (folder, store) = (TempDir::new().unwrap(), Store::empty());
    for (number, case) in demo_fixtures().iter().enumerate() {
        let (kind, bytes) = case.file.as_ref().unwrap();
        let (flag, suffix) = match kind {
            FileKind::Image => ("--image", "png"),
            FileKind::Audio => ("--audio", "wav"),
        };
        let path = folder.path().join(format!("{number}.{suffix}"));
        std::fs::write(&path, bytes).unwrap();
        let run = ["run", "demo", "--device", "cpu", "--image-budget", "70", flag];
        let said = store.rullama(&run).and([path.to_str().unwrap(), case.question()]).stdout();
        let answer = DemoAnswer { text: said, ..DemoAnswer::default() };
        assert!(case.right(&answer), "{:?}: {answer:?}", case.conversation.messages);
    }
}
