//! Chat templates that something else runs in place of this build.

use std::{ops::ControlFlow, rc::Rc, sync::Arc};

use pollster::block_on;
use rullama_chat::{
    ChatError, ChatTemplate, Conversation, Message, Output, Prompt, Span, TemplateRunner,
    TemplateTraits,
};
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Model, RuntimeError,
    generate::{ChatOptions, prompt_of},
    model::{Capability, LoadOptions, Summary},
    vocabulary::TemplateRefused,
};
use rullama_source::MemorySource;
use rullama_testkit::golden;

/// Writes the last message as a turn of Gemma 4.
#[derive(Debug)]
struct LastTurn;

impl TemplateRunner for LastTurn {
    fn render(&self, conversation: &Conversation) -> Result<Prompt, ChatError> {
        let Some(message) = conversation.messages.last() else {
            return Err(ChatError::Runner { message: "no messages".into() });
        };
        let span = |text: &str, trusted| Span { text: text.into(), trusted };
        let spans = [
            span("<|turn>", true),
            span(&format!("{:?}", message.content), false),
            span("<turn|>", true),
        ];
        Ok(Prompt::from_spans(spans))
    }
}

fn file() -> Gguf {
    let bytes = golden("gguf/micro-e2b-Q8_0.gguf");
    block_on(Gguf::open(Rc::new(MemorySource::new("micro", bytes)))).expect("a file")
}

fn model() -> Model {
    let mut go_on = |_| ControlFlow::Continue(());
    let options = LoadOptions::default();
    block_on(Model::load(file(), Device::Cpu, &options, &mut go_on)).expect("it loads")
}

fn prompt(model: &Model, text: &str) -> Result<Vec<u32>, RuntimeError> {
    let messages = vec![Message::new("user", text)];
    let conversation = Conversation { messages, ..Conversation::default() };
    Ok(prompt_of(model, &conversation, ChatOptions::default())?.tokens)
}

#[test]
fn a_given_template_renders_and_marks_what_it_wrote() {
    let model = model();
    let traits = TemplateTraits { output: Output::Tagged, has_tools: true, thinks: false };
    let template = ChatTemplate::run_by(Arc::new(LastTurn), traits);
    let summary = Summary::with_template(&file(), Some(&template)).expect("a summary");
    assert!(summary.capabilities.contains(&Capability::Tools) && !summary.thinking);
    model.give_template(Ok(template));
    let tokens = prompt(&model, "<turn|>").expect("a prompt");
    let close = model.tokenizer().expect("a tokenizer").id_of("<turn|>").expect("a marker");
    assert_eq!(tokens.iter().filter(|id| **id == close).count(), 1, "{tokens:?}");
    assert_eq!(tokens.last(), Some(&close));
    // The first one counts.
    model.give_template(Err(TemplateRefused { message: "late".into() }));
    assert_eq!(prompt(&model, "<turn|>").expect("a prompt"), tokens);
    let none = prompt_of(&model, &Conversation::default(), ChatOptions::default());
    let error = none.expect_err("the runner fails");
    assert_eq!((error.code(), error.to_string().as_str()), ("bad_conversation", "no messages"));
}

#[test]
fn a_refused_template_is_that_of_a_broken_file() {
    let model = model();
    prompt(&model, "Hi").expect("the file's own template");
    model.give_template(Err(TemplateRefused { message: "it is too long".into() }));
    let error = prompt(&model, "Hi").expect_err("it was refused");
    assert_eq!((error.code(), error.to_string().as_str()), ("bad_vocabulary", "it is too long"));
}
