//! What an engine reports while it generates.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::ApiError;

/// Something that happened. A generation is one `Started`, any number of pieces, one `Done` per choice; or it ends with
/// `Failed`.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerationEvent {
    /// The prompt is in the KV cache.
    Started {
        /// Tokens of all prompts, cached ones included.
        prompt_tokens: u64,
        /// How many of them came from the cache.
        cached_tokens: u64,
    },
    /// A piece of a thought.
    Thinking {
        /// Which choice, from 0.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// A piece of the answer.
    Text {
        /// Which choice, from 0.
        choice: u32,
        /// The piece.
        text: String,
        /// Its tokens, where the request wants log-probabilities.
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
    /// The end of everything.
    Failed(ApiError),
}

/// Why a choice ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoneReason {
    /// The model ended its turn.
    Stop,
    /// A token limit or the end of the context.
    Length,
    /// One of the request's stop texts, which is not part of the answer.
    StopSequence(String),
    /// The turn ended with tool calls.
    ToolCalls,
}

/// Tokens and times of one choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Generated tokens, thoughts and calls included.
    pub completion_tokens: u64,
    /// How many of them were thoughts.
    pub reasoning_tokens: u64,
    /// Loading the model.
    pub load: Duration,
    /// Prefill.
    pub prompt: Duration,
    /// Decoding.
    pub eval: Duration,
    /// From the request's arrival on.
    pub total: Duration,
    /// Prompt and answer as tokens, for Ollama's `context`; empty where nobody needs it.
    pub context: Vec<u32>,
}

/// A token with its log-probability.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenLogprob {
    /// The token's text; replacement characters where its bytes are not whole characters.
    pub token: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The most likely tokens at its place.
    pub top: Vec<Self>,
}
