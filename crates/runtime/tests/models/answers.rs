//! Generation: events, stop strings, limits, seeds.

use pollster::block_on;
use rullama_chat::{Conversation, Message, ReplyPrefix, Start};
use rullama_engine::executor::Device;
use rullama_runtime::{
    Model,
    generate::{ChatOptions, Done, Event, Finish, Generation, Prompt, prompt_of},
    options::SamplingOptions,
    session::SessionOptions,
};
use rullama_tokenizer::Render;

use crate::golden::{Golden, devices, model};

fn reply(model: &Model, prompt: &Prompt, options: &SamplingOptions, seed: u32) -> (String, Done) {
    let options = SamplingOptions { num_predict: options.num_predict.min(40), ..options.clone() };
    let mut session = model.session(&SessionOptions::default()).expect("a session");
    let mut generation =
        Generation::new(&mut session, model, prompt, &options, seed).expect("a generation starts");
    let (mut text, mut done) = (String::new(), None);
    while let Some(event) = block_on(generation.next()).expect("an event") {
        match event {
            Event::Text(piece) | Event::Thinking(piece) => text += &piece,
            Event::Done(end) => done = Some(end),
            _ => {}
        }
    }
    (text, done.expect("a reply ends"))
}

fn limited(num_predict: i32) -> SamplingOptions {
    SamplingOptions { num_predict, ..SamplingOptions::default() }
}

#[test]
fn a_seed_reproduces_a_reply() {
    for device in devices() {
        let model = model("tiny-e2b-Q4_K_M", &device);
        let prompt = Prompt::text(&model, "the cat").expect("tokens");
        let options = limited(6);
        let (first, done) = reply(&model, &prompt, &options, 7);
        assert_eq!(reply(&model, &prompt, &options, 7).0, first, "on {}", device.name());
        assert_ne!(reply(&model, &prompt, &options, 8).0, first, "on {}", device.name());
        assert!(done.answer_tokens <= 6 && done.prompt_tokens == prompt.tokens.len());
        // The host's sampler is reproducible too.
        let options = SamplingOptions { top_k: 0, ..options };
        let (first, _) = reply(&model, &prompt, &options, 7);
        assert_eq!(reply(&model, &prompt, &options, 7).0, first, "on {}", device.name());
    }
}

#[test]
fn temperature_zero_is_greedy_on_device_and_host() {
    let golden = Golden::of("tiny-e2b-Q4_K_M");
    for device in devices() {
        let model = model("tiny-e2b-Q4_K_M", &device);
        let prompt = Prompt::tokens(golden.ids("short.ids"));
        let options = SamplingOptions { temperature: 0.0, ..limited(10) };
        let on_device = reply(&model, &prompt, &options, 1);
        let on_host = reply(&model, &prompt, &SamplingOptions { logprobs: true, ..options }, 1);
        assert_eq!(on_device, on_host, "on {}", device.name());
    }
}

#[test]
fn limits_and_stop_strings_end_a_reply() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let prompt = Prompt::text(&model, "a").expect("tokens");
    let greedy = |num_predict| SamplingOptions { temperature: 0.0, ..limited(num_predict) };
    let (text, done) = reply(&model, &prompt, &greedy(5), 1);
    assert_eq!((done.finish, done.answer_tokens), (Finish::Length, 5));
    let (whole, _) = reply(&model, &prompt, &greedy(30), 1);
    assert!(whole.starts_with(&text));
    let stop: String = whole.chars().skip(4).take(3).collect();
    let (cut, done) =
        reply(&model, &prompt, &SamplingOptions { stop: vec![stop.clone()], ..greedy(30) }, 1);
    assert_eq!(done.finish, Finish::Stop);
    assert_eq!(cut, whole[..whole.find(&stop).expect("it is there")]);
}

#[test]
fn conversations_are_rendered_and_cancelled() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let conversation =
        Conversation { messages: vec![Message::new("user", "hello")], ..Conversation::default() };
    let prompt = prompt_of(&model, &conversation, ChatOptions::default()).expect("a prompt");
    let mut session = model.session(&SessionOptions::default()).expect("a session");
    let options = limited(50);
    let mut generation =
        Generation::new(&mut session, &model, &prompt, &options, 3).expect("a generation starts");
    block_on(generation.next()).expect("an event");
    generation.cancel();
    let mut last = None;
    while let Some(event) = block_on(generation.next()).expect("an event") {
        last = Some(event);
    }
    assert!(matches!(last, Some(Event::Done(Done { finish: Finish::Cancelled, .. }))));
}

#[test]
fn a_reply_continues_its_prefix() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let prompt = |prefix: Option<ReplyPrefix>| {
        let messages = vec![Message::new("user", "hello")];
        let conversation =
            Conversation { messages, thinking: true, prefix, ..Conversation::default() };
        prompt_of(&model, &conversation, ChatOptions::default()).expect("a prompt")
    };
    let begin = |text: &str| prompt(Some(ReplyPrefix { text: text.into(), thinking: None }));
    let (plain, begun) = (prompt(None), begin("the cat"));
    assert!(begun.tokens.starts_with(&plain.tokens));
    let added = &begun.tokens[plain.tokens.len()..];
    let tokenizer = model.tokenizer().expect("words");
    assert_eq!(tokenizer.decode(added, Render::All), "the cat");
    assert_eq!((plain.thinks, begun.thinks), (true, false), "the text has begun");
    let start = |prompt: &Prompt| prompt.parser.as_ref().expect("a parser").start;
    assert_eq!([start(&plain), start(&begun)], [Start::Content, Start::Text]);
    assert_eq!(start(&begin(" ")), Start::Content);
    let (_, done) = reply(&model, &begun, &limited(3), 1);
    assert_eq!(done.prompt_tokens, begun.tokens.len());
}
