//! Prompts: a conversation rendered with the chat template, or plain text.

use rullama_chat::{ChatTemplate, Conversation, ParserOptions, Thinking};
use rullama_tokenizer::{Span, Special, Tokenizer};

use crate::{
    error::RuntimeError,
    media::{EncodedMedia, spread},
    model::Model,
    session::Media,
};

/// Tokens to continue, and how to read what comes.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The tokens; images and audio have placeholders among them.
    pub tokens: Vec<u32>,
    /// What stands in place of the placeholders, in order.
    pub media: Vec<Media>,
    /// How the answer is taken apart; `None` leaves it as it is.
    pub parser: Option<ParserOptions>,
    /// Whether the model may think before it answers, where the reply is constrained.
    pub thinks: bool,
}

/// How a conversation is turned into a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatOptions {
    /// Thoughts are not reported.
    pub hide_thinking: bool,
}

impl Prompt {
    /// Plain text after a beginning-of-sequence token; the answer is reported as it comes.
    ///
    /// # Errors
    /// If the model's vocabulary is broken.
    pub fn text(model: &Model, text: &str) -> Result<Self, RuntimeError> {
        Ok(Self::plain(model.tokenizer()?, text))
    }

    pub(crate) fn plain(tokenizer: &Tokenizer, text: &str) -> Self {
        let mut tokens = tokenizer.encode(text, Special::None);
        tokens.splice(0..0, tokenizer.begin());
        Self::tokens(tokens)
    }

    /// Tokens as they are; the answer is reported as it comes.
    pub fn tokens(tokens: Vec<u32>) -> Self {
        Self { tokens, media: Vec::new(), parser: None, thinks: false }
    }
}

/// A conversation of text as the model wants it.
///
/// # Errors
/// If the conversation cannot be rendered or has images or audio, or the model's template is not known.
pub fn prompt_of(
    model: &Model,
    conversation: &Conversation,
    options: ChatOptions,
) -> Result<Prompt, RuntimeError> {
    prompt_with(model, conversation, &[], options)
}

/// A conversation as the model wants it, with what was encoded of its images, audio and videos, in order.
///
/// # Errors
/// If the conversation cannot be rendered, has other media than were given, or the model's template is not known.
pub fn prompt_with(
    model: &Model,
    conversation: &Conversation,
    media: &[EncodedMedia],
    options: ChatOptions,
) -> Result<Prompt, RuntimeError> {
    rendered_prompt((model.tokenizer()?, &model.template()?), conversation, media, options)
}

/// The same for callers that have a vocabulary and a template but no model.
pub(crate) fn rendered_prompt(
    (tokenizer, template): (&Tokenizer, &ChatTemplate),
    conversation: &Conversation,
    media: &[EncodedMedia],
    options: ChatOptions,
) -> Result<Prompt, RuntimeError> {
    let rendered = template.render(conversation, true)?;
    let (spans, media) = spread(&rendered, media, tokenizer)?;
    let spans: Vec<Span<'_>> = spans
        .iter()
        .map(|span| if span.trusted { Span::Template(&span.text) } else { Span::Text(&span.text) })
        .collect();
    let parser = ParserOptions {
        thinking: if options.hide_thinking { Thinking::Hide } else { Thinking::Show },
        start: rendered.end().into(),
        output: template.output(),
        tools: conversation.tools.clone(),
    };
    let tokens = tokenizer.encode_prompt(&spans);
    Ok(Prompt { tokens, media, parser: Some(parser), thinks: conversation.thinking })
}
