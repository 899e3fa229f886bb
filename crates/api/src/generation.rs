//! A request to generate, whichever API it came by.

use rullama_chat::{Conversation, Message, Tool};
use serde_json::Value;

use crate::request::conversation::{Builder, Pieces, Trailing};
use crate::{ApiError, Dialect, KeepAlive, Media, Options};

/// A request to generate text.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationRequest {
    /// Whose API it came by; defaults of the server may depend on it.
    pub dialect: Dialect,
    /// The model, as the client wrote it.
    pub model: String,
    /// What to continue.
    pub input: Input,
    /// Sampling, stopping and loading.
    pub options: Options,
    /// What the answer must look like.
    pub format: Format,
    /// Whether tools may, must or must not be called.
    pub tool_choice: ToolChoice,
    /// Whether the model may make several calls in one turn.
    pub parallel_tool_calls: bool,
    /// Whether the model shall think; absent = the model's default.
    pub think: Option<bool>,
    /// Whether a model that cannot think ignores [`Self::think`] instead of refusing the request.
    pub think_if_capable: bool,
    /// Most tokens of thought.
    pub think_budget: Option<u32>,
    /// Choices per prompt, at least 1; they share the prefill.
    pub n: u32,
    /// Log-probabilities of the tokens, with this many alternatives (0 to 20).
    pub logprobs: Option<u8>,
    /// How long the model stays loaded.
    pub keep_alive: Option<KeepAlive>,
    /// Whether the oldest messages may be dropped where the prompt exceeds the context.
    pub truncate: bool,
    /// Whether the context may be shifted where the answer reaches its end.
    pub shift: bool,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether the stream ends with a chunk of usage.
    pub include_usage: bool,
    /// Scales of LoRA adapters, where the request sets them; those not listed are 0.
    pub lora: Option<Vec<LoraScale>>,
    /// Whether the prompt is repeated before the answer: the engine reports it as the first text of each choice.
    pub echo: bool,
    /// Whether only the rendered prompt is wanted.
    pub debug_render_only: bool,
}

/// What a request wants continued.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Messages.
    Chat(ChatInput),
    /// Text.
    Prompt(PromptInput),
    /// Nothing: the model is to be loaded, or unloaded where `keep_alive` is 0.
    Load,
}

/// Messages with their media, tools and the beginning of the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatInput {
    /// Messages and tools. Parts of the kinds `image` and `audio` stand for [`Self::media`], in this order. `thinking` is
    /// left false: the server sets it from the request's `think` and the model's default.
    pub conversation: Conversation,
    /// The files, in the order in which their markers appear in the rendered prompt.
    pub media: Vec<Media>,
    /// The beginning of the answer, which the model continues.
    pub prefill: Option<Prefill>,
}

/// The beginning of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefill {
    /// A finished thought before it.
    pub thinking: Option<String>,
    /// The text to continue.
    pub text: String,
}

/// Text to continue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptInput {
    /// The prompts, at least one; choice `i` belongs to prompt `i / n`.
    pub prompts: Vec<PromptText>,
    /// Whether the prompts are taken verbatim, without a chat template.
    pub raw: bool,
    /// A system text.
    pub system: Option<String>,
    /// The text after the gap to fill.
    pub suffix: Option<String>,
    /// Files that come before the text.
    pub media: Vec<Media>,
    /// Tokens of an earlier exchange that come before the prompt.
    pub context: Vec<u32>,
}

impl PromptInput {
    /// A prompt as a chat: system text, files, then the text as the user's message. None where there is nothing to put
    /// into a template: the prompt is raw, has a gap to fill, or comes as tokens.
    pub fn to_chat(&self, prompt: &PromptText) -> Option<ChatInput> {
        let PromptText::Text(text) = prompt else { return None };
        if self.raw || self.suffix.is_some() {
            return None;
        }
        let mut builder = Builder::default();
        builder.system(self.system.clone());
        let mut pieces = Pieces::default();
        for media in &self.media {
            builder.media(&mut pieces, media.clone());
        }
        pieces.text(text.clone(), "");
        let content = pieces.into_content();
        builder.messages.push(Message { role: "user".to_owned(), content, ..Message::default() });
        builder.finish(Vec::new(), Trailing::Turn).ok()
    }
}

/// One prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptText {
    /// As text.
    Text(String),
    /// As token ids, not yet checked against the vocabulary.
    Tokens(Vec<u32>),
}

/// What an answer must look like.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Format {
    /// Anything.
    #[default]
    Text,
    /// A JSON object.
    Json,
    /// JSON that obeys this schema.
    Schema(Value),
    /// A sentence of this grammar.
    Grammar(Grammar),
}

/// A grammar, in one of the notations that clients write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grammar {
    /// llama.cpp's notation.
    Gbnf(String),
    /// llguidance's notation; requests mark it with a first line `%llguidance`.
    Lark(String),
}

/// Whether tools may, must or must not be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    #[default]
    Auto,
    /// No calls.
    None,
    /// At least one call.
    Required,
    /// A call of this tool.
    Named(String),
    /// Only these tools.
    Allowed {
        /// Their names, all of which are declared.
        names: Vec<String>,
        /// Whether at least one call must be made.
        required: bool,
    },
}

/// How strongly a LoRA adapter acts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoraScale {
    /// Its number in the list of `/lora-adapters`.
    pub id: u32,
    /// Its scale; 0 = off.
    pub scale: f32,
}

impl GenerationRequest {
    /// A request with an API's defaults and nothing else.
    pub(crate) fn new(dialect: Dialect, model: String, input: Input) -> Self {
        let is_ollama = dialect == Dialect::Ollama;
        Self {
            dialect,
            model,
            input,
            options: Options::default(),
            format: Format::default(),
            tool_choice: ToolChoice::default(),
            parallel_tool_calls: true,
            think: None,
            think_if_capable: false,
            think_budget: None,
            n: 1,
            logprobs: None,
            keep_alive: None,
            // Ollama drops messages silently; clients of the other two count on an error.
            truncate: is_ollama,
            shift: is_ollama,
            stream: is_ollama,
            include_usage: false,
            lora: None,
            echo: false,
            debug_render_only: false,
        }
    }

    /// A request to continue a chat, with an API's defaults and nothing else.
    pub fn chat(dialect: Dialect, model: String, chat: ChatInput) -> Self {
        Self::new(dialect, model, Input::Chat(chat))
    }

    /// Refuses a conversation that ends with calls: nothing can be generated before their results.
    pub(crate) fn check_end(self) -> Result<Self, ApiError> {
        if let Input::Chat(chat) = &self.input
            && let Some(last) = chat.conversation.messages.last()
            && !last.tool_calls.is_empty()
        {
            return Err(ApiError::UnansweredCalls);
        }
        Ok(self)
    }

    /// How many answers it wants: the prompts times `n`.
    pub fn choices(&self) -> u32 {
        let prompts = match &self.input {
            Input::Prompt(prompt) => u32::try_from(prompt.prompts.len()).unwrap_or(u32::MAX),
            _ => 1,
        };
        prompts.max(1).saturating_mul(self.n)
    }

    /// The tools it declares.
    pub fn tools(&self) -> &[Tool] {
        match &self.input {
            Input::Chat(chat) => &chat.conversation.tools,
            _ => &[],
        }
    }

    /// Whether it asks for the model to be unloaded.
    pub fn is_unload(&self) -> bool {
        self.input == Input::Load && self.keep_alive.is_some_and(KeepAlive::unloads_at_once)
    }
}
