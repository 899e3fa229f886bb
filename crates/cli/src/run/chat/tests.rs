//! Conversations with a tiny model.

use clap::Parser;
use rullama::Device;
use rullama_testkit::golden_path;
use serde_json::Value;

use super::*;
use crate::{
    args::{Args, Command},
    locate,
    run::{
        command::{Setting, Topic},
        screen::Screen,
    },
};

fn start(model: &str, flags: &[&str]) -> Result<Chat> {
    let path = golden_path(&format!("gguf/{model}.gguf"));
    let path = path.to_str().expect("a path of our own");
    let fixed = ["rullama", "run", path, "--seed", "7", "-n", "8", "--ctx", "256"];
    let args = Args::try_parse_from(fixed.iter().chain(flags)).expect("arguments");
    let Command::Run(args) = args.command else { panic!("run was asked for") };
    Chat::start(&locate::stores(None), &args)
}

fn chat(flags: &[&str]) -> Chat {
    start("micro-e2b-Q8_0", flags).expect("a chat")
}

fn say(chat: &mut Chat, text: &str) -> String {
    chat.say(text, &[], &mut Screen::silent()).expect("an answer").text
}

#[test]
fn what_was_said_is_read_once() {
    let mut chat = chat(&["--device", "cpu", "--system", "Be brief."]);
    say(&mut chat, "one");
    assert_eq!(chat.session.all_messages().len(), 3, "system, user, assistant");
    let answer = chat.say("two", &[], &mut Screen::silent()).expect("an answer");
    assert!(answer.done.cached_tokens > 5, "{:?}", answer.done);
    chat.clear();
    assert_eq!(chat.session.all_messages().len(), 1);
}

#[test]
fn a_kept_conversation_goes_on_as_if_never_left() {
    let mut one = chat(&["--device", "cpu"]);
    say(&mut one, "one");
    let saved = one.save().expect("saved");
    let mut two = chat(&["--device", "cpu"]);
    two.load(saved).expect("loaded");
    assert_eq!(two.session.all_messages(), one.session.all_messages());
    let (first, second) = (say(&mut one, "two"), two.say("two", &[], &mut Screen::silent()));
    let second = second.expect("an answer");
    assert_eq!(second.text, first);
    assert!(second.done.cached_tokens > 5, "{:?}", second.done);
}

#[test]
fn another_models_conversation_is_refused() {
    let mut one = start("micro-dense-BF16", &["--device", "cpu"]).expect("a chat");
    say(&mut one, "one");
    let saved = one.save().expect("saved");
    let mut two = chat(&["--device", "cpu"]);
    say(&mut two, "mine");
    let error = format!("{:#}", two.load(saved).expect_err("another model's"));
    assert!(error.contains("another model") && error.contains("micro-dense"), "{error}");
    assert_eq!(two.session.all_messages().len(), 2, "nothing has changed");
}

#[test]
fn a_lost_device_costs_no_conversation() {
    let mut chat = chat(&["--device", "gpu", "--system", "Be brief."]);
    let first = say(&mut chat, "one");
    chat.clear();
    let Device::Gpu(gpu) = chat.session.model().device() else { panic!("a GPU was asked for") };
    gpu.destroy();
    assert_eq!(say(&mut chat, "one"), first, "the new device answers as the old one did");
    assert_eq!(chat.session.all_messages().len(), 3);
}

#[test]
fn a_message_that_does_not_fit_is_not_kept() {
    let mut chat = chat(&["--device", "cpu"]);
    say(&mut chat, "one");
    let error = chat.say(&"word ".repeat(300), &[], &mut Screen::silent()).expect_err("too long");
    assert!(error.to_string().contains("the context holds 256"), "{error}");
    assert_eq!(chat.session.all_messages().len(), 2);
    say(&mut chat, "two");
}

#[test]
fn settings() {
    let mut chat = chat(&["--device", "cpu"]);
    let parameter = |name: &str, value: Value| Setting::Parameter(name.into(), value);
    chat.set(parameter("temperature", 0.25.into())).expect("set");
    chat.set(parameter("num_ctx", 128.into())).expect("set");
    assert_eq!((chat.session.sampling.temperature, chat.session.context()), (0.25, 128));
    assert!(chat.set(parameter("tempo", 1.into())).is_err());
    assert!(chat.set(parameter("num_ctx", 1_000_000_000.into())).is_err());
    assert!(chat.show(Topic::Parameters).expect("shown").contains("temperature"));
    assert!(chat.show(Topic::Info).expect("shown").contains("128 tokens"));
    assert!(chat.show(Topic::Template).expect("shown").contains("small family"));
    chat.set(Setting::System("Be kind.".into())).expect("set");
    assert_eq!(chat.show(Topic::System).expect("shown"), "Be kind.\n");
}
