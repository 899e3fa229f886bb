//! Conversations through the library, with tiny models.

use std::path::PathBuf;

use rullama::{
    Device, DeviceChoice, Error, Event, Finish, Model, OpenOptions, Session, SessionOptions,
    TrainOptions, Training, UserMessage, read_adapter,
};
use rullama_testkit::golden_path;

const MODEL: &str = "micro-e2b-Q8_0";

fn file(name: &str) -> String {
    golden_path(&format!("gguf/{name}.gguf")).to_str().expect("a UTF-8 path").to_owned()
}

fn open(name: &str, options: &OpenOptions) -> Model {
    let context = options.context.or(Some(256));
    let options = OpenOptions { context, ..options.clone() };
    Model::open_with(&file(name), &options).expect("it opens")
}

/// A greedy session with at most eight tokens per reply.
fn brief(model: &Model) -> Session {
    let mut session = model.session().expect("a session");
    session.sampling.temperature = 0.0;
    session.sampling.num_predict = 8;
    session
}

fn cpu() -> OpenOptions {
    OpenOptions { device: DeviceChoice::Cpu, ..OpenOptions::default() }
}

#[test]
fn streams_and_whole_replies_are_the_same() {
    let model = open(MODEL, &cpu());
    let whole = brief(&model).send("one").expect("a reply");
    assert!(!whole.text.is_empty() && whole.done.answer_tokens <= 8, "{whole:?}");
    let mut session = brief(&model);
    let (mut text, mut done) = (String::new(), None);
    for event in session.stream("one").expect("a stream") {
        match event.expect("it runs") {
            Event::Text(piece) => text.push_str(&piece),
            Event::Done(end) => done = Some(end),
            _ => {}
        }
    }
    assert_eq!((&text, done), (&whole.text, Some(whole.done)));
    assert_eq!(session.messages().len(), 2);
    let again = session.send("two").expect("a reply");
    assert!(again.done.cached_tokens > 5, "the earlier turns are cached: {again:?}");
}

#[test]
fn a_dropped_stream_keeps_what_was_generated() {
    let model = open(MODEL, &cpu());
    let mut session = brief(&model);
    let mut text = String::new();
    for event in session.stream("one").expect("a stream") {
        if let Event::Text(piece) = event.expect("it runs") {
            text = piece;
            break;
        }
    }
    let kept = session.messages().to_vec();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(kept[1], rullama::Message::new("assistant", text));
    // No token was generated: the message is removed, too.
    drop(session.stream("two").expect("a stream"));
    assert_eq!(session.messages(), kept);
}

#[test]
fn a_cancelled_reply_ends_at_once() {
    let mut session = brief(&open(MODEL, &cpu()));
    let mut stream = session.stream("one").expect("a stream");
    assert!(stream.step().expect("it runs"));
    stream.cancel();
    let reply = stream.finish().expect("it ends");
    assert_eq!((reply.done.finish, reply.done.answer_tokens), (Finish::Cancelled, 1));
    // A reply of nothing is no message.
    let kept = session.messages().to_vec();
    let mut stream = session.stream("two").expect("a stream");
    stream.prefill(&mut |_| false).expect("it runs");
    assert_eq!(stream.finish().expect("it ends").done.finish, Finish::Cancelled);
    assert_eq!(session.messages(), kept);
}

#[test]
fn failed_messages_are_not_kept() {
    let mut session = brief(&open(MODEL, &cpu()));
    session.send("one").expect("a reply");
    let error = session.send("word ".repeat(300)).expect_err("too long");
    assert_eq!(error.code(), "context_full");
    let missing = UserMessage::new("two").image_file("no/such.png").expect_err("no file");
    assert!(
        matches!(&missing, Error::File { path, .. } if path.ends_with("such.png")),
        "{missing}"
    );
    let image = golden_path("media/micro-e2b-image.png");
    let message = UserMessage::new("what?").image_file(&image).expect("an image");
    let error = session.send(message).expect_err("no encoder");
    assert_eq!(error.code(), "no_tower");
    assert!(error.to_string().contains("micro-e2b-image.png"), "{error}");
    assert_eq!(session.messages().len(), 2);
    assert!(matches!(brief(session.model()).stream_reply().err(), Some(Error::NoMessage)));
}

#[test]
fn projectors_are_named_or_found() {
    let projector = Some(file("micro-e2b-mmproj-F16"));
    let model = open("micro-e2b-BF16", &OpenOptions { projector, ..cpu() });
    let image = golden_path("media/micro-e2b-image.png");
    let message = UserMessage::new("what?").image_file(&image).expect("an image");
    let options = SessionOptions { context: Some(512), ..SessionOptions::default() };
    let mut session = model.session_with(&options).expect("a session");
    session.sampling.num_predict = 1;
    let reply = session.send(message).expect("a reply");
    assert!(reply.done.prompt_tokens > 250, "an image has many tokens: {reply:?}");
}

#[test]
fn a_lost_device_keeps_the_conversation() {
    let options = OpenOptions { device: DeviceChoice::Gpu, ..OpenOptions::default() };
    let mut session = brief(&open(MODEL, &options));
    let first = session.send("one").expect("a reply").text;
    session.clear();
    let Device::Gpu(gpu) = session.model().device() else { panic!("a GPU was requested") };
    gpu.destroy();
    assert_eq!(session.send("one").expect("a reply on a new device").text, first);
    assert_eq!(session.messages().len(), 2);
}

#[test]
fn saved_conversations_belong_to_their_model() {
    let mut one = brief(&open(MODEL, &cpu()));
    one.send("one").expect("a reply");
    let saved = one.save().expect("saved");
    let mut two = brief(&open(MODEL, &cpu()));
    two.load(saved.clone()).expect("loaded");
    let next = two.send("two").expect("a reply");
    assert_eq!(next.text, one.send("two").expect("a reply").text);
    assert!(next.done.cached_tokens > 5, "{next:?}");
    let error = brief(&open("micro-dense-BF16", &cpu())).load(saved).expect_err("another model");
    assert_eq!(error.code(), "bad_session");
    assert!(error.to_string().contains(MODEL), "{error}");
}

#[test]
fn adapters_of_the_model_and_of_a_session() {
    let path = golden_path("lora/micro-e2b-Q8_0-adapter");
    let plain = open(MODEL, &cpu());
    let base = brief(&plain).complete("one two").expect("fits").finish().expect("a text").text;
    let adapters = vec![(path.clone(), 8.0)];
    let adapted = open(MODEL, &OpenOptions { adapters, ..cpu() });
    let changed = |session: &mut Session| {
        session.complete("one two").expect("fits").finish().expect("a text").text
    };
    let with = changed(&mut brief(&adapted));
    assert_ne!(with, base);
    let mut session = brief(&plain);
    session.set_adapters(vec![(read_adapter(&path).expect("read"), 8.0)]).expect("set");
    assert_eq!(changed(&mut session), with);
    session.set_adapters(Vec::new()).expect("removed");
    assert_eq!(changed(&mut session), base);
}

#[test]
fn a_trained_adapter_is_saved_and_used() {
    let model = open(MODEL, &cpu());
    let options = TrainOptions { rank: 2, steps: Some(3), rate: 0.01, ..TrainOptions::default() };
    let line = r#"{"prompt":"one","completion":"two"}"#;
    let mut training = Training::start(&model, line, &options).expect("it starts");
    let events = training.by_ref().collect::<Result<Vec<_>, _>>().expect("it learns");
    assert_eq!(events.len(), 4, "three steps and the end: {events:?}");
    let losses = training.run().losses();
    assert!(losses[2] < losses[0], "{losses:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("adapter");
    training.save(&path).expect("saved");
    let saved = read_adapter(&path).expect("read");
    assert_eq!(saved.pairs, training.adapter().expect("an adapter").pairs);
    let bad = Training::start(&model, "{}", &options).expect_err("no example");
    assert!(bad.to_string().contains("line 1"), "{bad}");
}
