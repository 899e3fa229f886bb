//! Token counts over all choices.

use serde_json::{Value, json};

use crate::{GenerationEvent, Stats};

/// Token counts of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompts, including cached ones.
    pub prompt_tokens: u64,
    /// The number of prompt tokens from the cache.
    pub cached_tokens: u64,
    /// Generated tokens of all choices.
    pub completion_tokens: u64,
    /// The number of generated tokens in thoughts.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Counts an event.
    pub(super) fn count(&mut self, event: &GenerationEvent) {
        match event {
            GenerationEvent::Started { prompt_tokens, cached_tokens } => {
                self.prompt_tokens = *prompt_tokens;
                self.cached_tokens = (*cached_tokens).min(*prompt_tokens);
            }
            GenerationEvent::Done { stats, .. } => self.add(stats),
            _ => {}
        }
    }

    fn add(&mut self, stats: &Stats) {
        self.completion_tokens = self.completion_tokens.saturating_add(stats.completion_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(stats.reasoning_tokens);
    }

    fn total(self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// The form of Chat Completions and Completions.
    pub(super) fn completions(self) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total(),
            "prompt_tokens_details": { "cached_tokens": self.cached_tokens },
            "completion_tokens_details": { "reasoning_tokens": self.reasoning_tokens },
        })
    }

    /// The form of Responses.
    pub(super) fn responses(self) -> Value {
        json!({
            "input_tokens": self.prompt_tokens,
            "input_tokens_details": { "cached_tokens": self.cached_tokens },
            "output_tokens": self.completion_tokens,
            "output_tokens_details": { "reasoning_tokens": self.reasoning_tokens },
            "total_tokens": self.total(),
        })
    }

    /// The form of transcriptions.
    pub(super) fn transcription(self) -> Value {
        json!({
            "type": "tokens",
            "input_tokens": self.prompt_tokens,
            "output_tokens": self.completion_tokens,
            "total_tokens": self.total(),
        })
    }

    /// Anthropic's form: tokens from the cache are not input tokens.
    pub(super) fn anthropic(self) -> Value {
        json!({
            "input_tokens": self.prompt_tokens - self.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached_tokens,
            "output_tokens": self.completion_tokens,
        })
    }
}
