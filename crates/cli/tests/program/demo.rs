//! The demo model.

use rullama_testkit::{DemoAnswer, FileKind, demo_fixtures};
use tempfile::TempDir;

use crate::{program::has, store::Store};

fn reply(prompt: &str) -> String {
    let store = Store::empty();
    store.rullama(&["run", "demo", "--device", "cpu", prompt]).stdout()
}

#[test]
fn it_answers_simple_questions() {
    has(&reply("What is 23 + 45?"), &["68"]);
    has(&reply("What is the capital of France?"), &["Paris"]);
    has(&reply("Hello!"), &["Demo"]);
}

#[test]
fn it_is_the_default_model() {
    let store = Store::empty();
    let text = store.rullama(&["run", "--device", "cpu"]).stdin("What is 12 + 30?").stdout();
    has(&text, &["42"]);
}

#[test]
fn show_and_verify() {
    let store = Store::empty();
    has(&store.rullama(&["show", "demo"]).stdout(), &["inside this program", "gemma4"]);
    has(&store.rullama(&["show", "demo", "--json"]).stdout(), &["built in"]);
    has(&store.rullama(&["verify", "demo"]).stdout(), &["ok"]);
}

#[test]
fn images_and_audio() {
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
        let reply = store.rullama(&run).and([path.to_str().unwrap(), case.question()]).stdout();
        let answer = DemoAnswer { text: reply, ..DemoAnswer::default() };
        assert!(case.right(&answer), "{:?}: {answer:?}", case.conversation.messages);
    }
}
