//! The four APIs, and what models must be able to do for them.

use std::fmt;

use serde::Serialize;

/// Whose API a request was written for.
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

/// Something a model can do, under Ollama's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Continue text and answer messages.
    Completion,
    /// Call tools.
    Tools,
    /// Fill in text between a prompt and a suffix.
    Insert,
    /// Read images.
    Vision,
    /// Hear audio.
    Audio,
    /// Embed text.
    Embedding,
    /// Think before answering.
    Thinking,
    /// Chat. Part of `completion`, but refused under its own name.
    Chat,
}

impl Capability {
    /// The text that says that `model` lacks this. Clients look for these words, with and without quotes.
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
