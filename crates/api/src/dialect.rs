//! The four APIs, and the capabilities that requests need of models.

use std::fmt;

use serde::Serialize;

/// The API that a request was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `/api/…`
    Ollama,
    /// `/v1/…` apart from Anthropic's routes.
    OpenAi,
    /// `/v1/messages…`
    Anthropic,
    /// `/health`, `/tokenize` and the like.
    LlamaCpp,
}

/// A capability of a model, under Ollama's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Continue text and reply to messages.
    Completion,
    /// Call tools.
    Tools,
    /// Fill in text between a prompt and a suffix.
    Insert,
    /// Read images.
    Vision,
    /// Understand audio.
    Audio,
    /// Embed text.
    Embedding,
    /// Think before replying.
    Thinking,
    /// Chat. Part of `completion`, but reported under its own name.
    Chat,
}

impl Capability {
    /// The error text for a `model` without this capability. Clients match on these words, with and without quotes.
    pub(crate) fn refusal(self, model: &str) -> String {
        match self {
            Self::Tools | Self::Insert => format!("{model} does not support {self}"),
            Self::Completion => format!("\"{model}\" does not support generate"),
            _ => format!("\"{model}\" does not support {self}"),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completion => "completion",
            Self::Tools => "tools",
            Self::Insert => "insert",
            Self::Vision => "vision",
            Self::Audio => "audio",
            Self::Embedding => "embedding",
            Self::Thinking => "thinking",
            Self::Chat => "chat",
        })
    }
}
