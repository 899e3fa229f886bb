//! Prompts: a conversation rendered with the chat template, or plain text.

use rullama_chat::{ChatTemplate, Conversation, ParserOptions, Start, Thinking};
use rullama_tokenizer::{Span, Special, Tokenizer};

use crate::{
    error::RuntimeError,
    media::{EncodedMedia, spread},
    model::Model,
    session::Media,
};

/// Tokens to continue, and how to parse the reply.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The tokens; images and audio have placeholders among them.
    pub tokens: Vec<u32>,
    /// The media that replace the placeholders, in order.
    pub media: Vec<Media>,
    /// How the reply is parsed; `None` reports it as plain text.
    pub parser: Option<ParserOptions>,
    /// Whether the model may think before a constrained reply.
    pub thinks: bool,
    /// Most tokens of thinking: a longer thought is ended, and the reply begins.
    pub thought_limit: Option<usize>,
}

/// Options for rendering a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatOptions {
    /// Whether thinking is not reported.
    pub hide_thinking: bool,
}

impl Prompt {
    /// Plain text after a beginning-of-sequence token; the reply is not parsed.
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

    /// Raw tokens; the reply is not parsed.
    pub fn tokens(tokens: Vec<u32>) -> Self {
        Self { tokens, media: Vec::new(), parser: None, thinks: false, thought_limit: None }
    }
}

/// Renders a text conversation with the model's template.
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

/// Renders a conversation with its encoded images, audio and videos, in order.
///
/// # Errors
/// If the conversation cannot be rendered, its media do not match `media`, or the model's template is not known.
pub fn prompt_with(
    model: &Model,
    conversation: &Conversation,
    media: &[EncodedMedia],
    options: ChatOptions,
) -> Result<Prompt, RuntimeError> {
    rendered_prompt((model.tokenizer()?, &model.template()?), conversation, media, options)
}

/// Renders a conversation with a tokenizer and a template.
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
    let prefix = conversation.prefix.as_ref();
    let begins_with_text = prefix.is_some_and(|prefix| !prefix.text.trim().is_empty());
    let parser = ParserOptions {
        thinking: if options.hide_thinking { Thinking::Hide } else { Thinking::Show },
        start: if begins_with_text { Start::Text } else { rendered.end().into() },
        output: template.output(),
        tools: conversation.tools.clone(),
    };
    let tokens = tokenizer.encode_prompt(&spans);
    // A reply that has begun has no thought ahead of it.
    let thinks = conversation.thinking && prefix.is_none();
    Ok(Prompt { tokens, media, parser: Some(parser), thinks, thought_limit: None })
}
