//! Generation requests of all APIs.

use rullama_chat::{Conversation, Message, Tool};
use serde_json::Value;

use crate::request::conversation::{Builder, Pieces, Trailing};
use crate::{ApiError, Dialect, KeepAlive, Media, Options};

/// A request to generate text.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationRequest {
    /// The API it came through; server defaults may depend on it.
    pub dialect: Dialect,
    /// The model, as the client wrote it.
    pub model: String,
    /// The input to continue.
    pub input: Input,
    /// Sampling, stop and load options.
    pub options: Options,
    /// The required format of the output.
    pub format: Format,
    /// Whether tools may, must or must not be called.
    pub tool_choice: ToolChoice,
    /// Whether the model may make several calls in one turn.
    pub parallel_tool_calls: bool,
    /// Whether the model shall think; absent: the model's default.
    pub think: Option<bool>,
    /// Whether a model that cannot think ignores [`Self::think`] instead of refusing the request.
    pub think_if_capable: bool,
    /// The maximum number of tokens in thoughts.
    pub think_budget: Option<u32>,
    /// Choices per prompt, at least 1; they share the prefill.
    pub n: u32,
    /// Log-probabilities of the tokens, with this number of alternatives (0 to 20).
    pub logprobs: Option<u8>,
    /// How long the model stays loaded.
    pub keep_alive: Option<KeepAlive>,
    /// Whether the oldest messages may be dropped if the prompt exceeds the context.
    pub truncate: bool,
    /// Whether the context may be shifted when generation fills it.
    pub shift: bool,
    /// Whether the response is streamed.
    pub stream: bool,
    /// Whether the stream ends with a usage chunk.
    pub include_usage: bool,
    /// Scales of LoRA adapters, if the request sets them; those not listed are 0.
    pub lora: Option<Vec<LoraScale>>,
    /// Whether the prompt is echoed before the completion: the engine reports it as the first text of each choice.
    pub echo: bool,
    /// Whether only the rendered prompt is requested.
    pub debug_render_only: bool,
}

/// The input of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A chat.
    Chat(ChatInput),
    /// Text prompts.
    Prompt(PromptInput),
    /// None: the model is to be loaded, or unloaded if `keep_alive` is 0.
    Load,
}

/// Messages with their media, tools and the beginning of the reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatInput {
    /// Messages and tools. Parts of the kinds `image` and `audio` refer to [`Self::media`], in this order. `thinking` is
    /// false: the server sets it from the request's `think` and the model's default.
    pub conversation: Conversation,
    /// The files, in the order of their markers in the rendered prompt.
    pub media: Vec<Media>,
    /// The beginning of the reply, which the model continues.
    pub prefill: Option<Prefill>,
}

/// The beginning of a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefill {
    /// A complete thought before it.
    pub thinking: Option<String>,
    /// The text to continue.
    pub text: String,
}

/// Text to continue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptInput {
    /// The prompts, at least one; choice `i` belongs to prompt `i / n`.
    pub prompts: Vec<PromptText>,
    /// Whether the prompts are used verbatim, without a chat template.
    pub raw: bool,
    /// A system text.
    pub system: Option<String>,
    /// The text after the gap (fill in the middle).
    pub suffix: Option<String>,
    /// Files that precede the text.
    pub media: Vec<Media>,
    /// Tokens of an earlier exchange that precede the prompt.
    pub context: Vec<u32>,
}

impl PromptInput {
    /// A prompt as a chat: system text, files, then the text as the user's message. `None` if no template applies: the prompt
    /// is raw, has a suffix, or is given as tokens.
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

/// The required format of the output.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Format {
    /// Any text.
    #[default]
    Text,
    /// A JSON object.
    Json,
    /// JSON that matches this schema.
    Schema(Value),
    /// Text that matches this grammar.
    Grammar(Grammar),
}

/// A grammar, in one of the supported notations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grammar {
    /// llama.cpp's GBNF.
    Gbnf(String),
    /// llguidance's Lark notation; requests mark it with a first line `%llguidance`.
    Lark(String),
    /// A regular expression that matches the whole output.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
}

/// Whether tools may, must or must not be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
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

/// The scale of a LoRA adapter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoraScale {
    /// Its index in the list of `/lora-adapters`.
    pub id: u32,
    /// Its scale; 0 = off.
    pub scale: f32,
}

impl GenerationRequest {
    /// A request with an API's defaults.
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
            // Ollama drops messages silently; clients of the other APIs expect an error.
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

    /// Refuses a conversation that ends with tool calls: their results must come first.
    pub(crate) fn check_end(self) -> Result<Self, ApiError> {
        if let Input::Chat(chat) = &self.input
            && let Some(last) = chat.conversation.messages.last()
            && !last.tool_calls.is_empty()
        {
            return Err(ApiError::UnansweredCalls);
        }
        Ok(self)
    }

    /// The total number of choices: the prompts times `n`.
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

    /// Whether it requests that the model is unloaded.
    pub fn is_unload(&self) -> bool {
        self.input == Input::Load && self.keep_alive.is_some_and(KeepAlive::unloads_at_once)
    }
}
