//! The model that comes with the program.

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
