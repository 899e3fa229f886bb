//! Events of the engine during generation.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::ApiError;

/// An event of a generation: one `Started`, any number of pieces, one `Done` per choice; or it ends with `Failed`.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerationEvent {
    /// The prompt is in the KV cache.
    Started {
        /// Tokens of all prompts, including cached ones.
        prompt_tokens: u64,
        /// The number of prompt tokens from the cache.
        cached_tokens: u64,
    },
    /// A piece of a thought.
    Thinking {
        /// Which choice, from 0.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// A piece of the reply's text.
    Text {
        /// Which choice, from 0.
        choice: u32,
        /// The piece.
        text: String,
        /// Its tokens, if the request wants log-probabilities.
        logprobs: Vec<TokenLogprob>,
    },
    /// A complete tool call.
    ToolCall {
        /// Which choice, from 0.
        choice: u32,
        /// The tool.
        name: String,
        /// Its arguments, in the order the model wrote them.
        arguments: Map<String, Value>,
    },
    /// The end of a choice.
    Done {
        /// Which choice, from 0.
        choice: u32,
        /// Why.
        reason: DoneReason,
        /// Tokens and times.
        stats: Stats,
    },
    /// The generation failed.
    Failed(ApiError),
}

/// Why a choice ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoneReason {
    /// The model ended its turn.
    Stop,
    /// A token limit or the context length was reached.
    Length,
    /// One of the request's stop texts, which is not part of the output.
    StopSequence(String),
    /// The turn ended with tool calls.
    ToolCalls,
}

/// Token counts and times of one choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Generated tokens, including thoughts and calls.
    pub completion_tokens: u64,
    /// The number of generated tokens in thoughts.
    pub reasoning_tokens: u64,
    /// Loading the model.
    pub load: Duration,
    /// Prefill.
    pub prompt: Duration,
    /// Decoding.
    pub eval: Duration,
    /// Since the request arrived.
    pub total: Duration,
    /// Prompt and output as tokens, for Ollama's `context`; empty if not needed.
    pub context: Vec<u32>,
}

/// A token with its log-probability.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenLogprob {
    /// The token's text, with replacement characters if its bytes are not complete characters.
    pub token: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The most likely tokens at its position.
    pub top: Vec<Self>,
}
