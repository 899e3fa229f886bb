//! Capabilities of a model, from its file's header.

use rullama_chat::Family;
use rullama_gguf::Gguf;

use super::ModelKind;
use crate::vocabulary;

/// A capability of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Generates text.
    Text,
    /// Accepts images.
    Images,
    /// Accepts audio.
    Audio,
    /// Calls tools.
    Tools,
    /// Can think before it replies.
    Thinking,
    /// Computes embeddings.
    Embeddings,
    /// Supports training of adapters.
    Training,
}

impl Capability {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Images => "images",
            Self::Audio => "audio",
            Self::Tools => "tools",
            Self::Thinking => "thinking",
            Self::Embeddings => "embeddings",
            Self::Training => "training",
        }
    }

    /// Capabilities of this file; projector files add more.
    pub fn of(gguf: &Gguf) -> Vec<Self> {
        let kind = ModelKind::of(gguf);
        let family = vocabulary::template(gguf).ok().map(|template| template.family());
        // Templates of no known family are assumed to support tools and thinking.
        let knows = |does: fn(Family) -> bool| {
            kind.chats() && family.is_some_and(|family| family.is_none_or(does))
        };
        let has =
            |start: &str| gguf.tensors().iter().any(|tensor| tensor.name().starts_with(start));
        // Encoders inside the file are supported for Gemma 4 only.
        let encoders = matches!(gguf.str("general.architecture"), Ok("gemma4"));
        [
            (Self::Text, kind.chats()),
            (Self::Images, encoders && has("v.")),
            (Self::Audio, encoders && has("a.")),
            (Self::Tools, knows(Family::has_tools)),
            (Self::Thinking, knows(Family::thinks)),
            (Self::Embeddings, kind == ModelKind::Embedding),
            (Self::Training, kind == ModelKind::Decoder),
        ]
        .into_iter()
        .filter_map(|(capability, can)| can.then_some(capability))
        .collect()
    }
}
