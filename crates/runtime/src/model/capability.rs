//! What a model can do, by its file's header.

use rullama_chat::Family;
use rullama_gguf::Gguf;

use super::ModelKind;
use crate::vocabulary;

/// Something that can be done with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// It writes text.
    Text,
    /// It takes images.
    Images,
    /// It takes audio.
    Audio,
    /// It calls tools.
    Tools,
    /// It can think before it answers.
    Thinking,
    /// It makes embeddings.
    Embeddings,
    /// Adapters can be trained for it.
    Training,
}

impl Capability {
    /// A stable word for programs and people.
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

    /// What this header promises; encoders in other files add to it.
    pub fn of(gguf: &Gguf) -> Vec<Self> {
        let kind = ModelKind::of(gguf);
        let family = vocabulary::template(gguf).ok().map(|template| template.family());
        // Templates of no known family decide by themselves what they do with tools and thoughts.
        let knows = |does: fn(Family) -> bool| {
            kind.chats() && family.is_some_and(|family| family.is_none_or(does))
        };
        let has =
            |start: &str| gguf.tensors().iter().any(|tensor| tensor.name().starts_with(start));
        // Of Gemma 4, encoders inside the file are used; those of other families are skipped.
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
