//! What a model can do, from the kind of its file, its encoders and its chat template: the one place that decides it, for the program,
//! the server and the browser.

use crate::ChatTemplate;

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

/// What a model file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRole {
    /// Generates token by token.
    Decoder,
    /// Denoises blocks of text.
    Diffusion,
    /// Embeds texts.
    Embedding,
    /// Nothing by itself: a drafter, a projector, an unknown file.
    Other,
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

    /// The capabilities of a model; `images` and `audio` say which encoders it has, inside its file or beside it. Models without a
    /// usable template still continue text.
    pub fn of_model(
        role: ModelRole,
        template: Option<&ChatTemplate>,
        images: bool,
        audio: bool,
    ) -> Vec<Self> {
        let chats = matches!(role, ModelRole::Decoder | ModelRole::Diffusion);
        let template = template.filter(|_| chats);
        let all = [
            (Self::Text, chats),
            (Self::Images, chats && images),
            (Self::Audio, chats && audio),
            (Self::Tools, template.is_some_and(ChatTemplate::has_tools)),
            (Self::Thinking, template.is_some_and(ChatTemplate::thinks)),
            (Self::Embeddings, role == ModelRole::Embedding),
            (Self::Training, role == ModelRole::Decoder),
        ];
        all.into_iter().filter_map(|(capability, can)| can.then_some(capability)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Capability, ModelRole};
    use crate::{ChatTemplate, Family};

    fn names(role: ModelRole, family: Option<Family>, images: bool, audio: bool) -> String {
        let template = family.map(ChatTemplate::from);
        let all = Capability::of_model(role, template.as_ref(), images, audio);
        all.into_iter().map(Capability::name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn capabilities_of_families() {
        let decoder = |family| names(ModelRole::Decoder, Some(family), false, false);
        for (family, can) in [
            (Family::Small, "text tools thinking training"),
            (Family::Gemma3, "text training"),
            (Family::MedGemma, "text thinking training"),
            (Family::FunctionGemma, "text tools training"),
            (Family::SmolLm2, "text training"),
            (Family::ChatMl, "text training"),
            (Family::Qwen2, "text training"),
            (Family::Qwen25, "text tools training"),
            (Family::Qwen3, "text tools thinking training"),
            (Family::Llama3, "text training"),
            (Family::Llama31, "text tools training"),
        ] {
            assert_eq!(decoder(family), can, "{family:?}");
        }
        let large = Some(Family::Large);
        assert_eq!(names(ModelRole::Diffusion, large, true, false), "text images tools thinking");
        assert_eq!(names(ModelRole::Decoder, None, true, true), "text images audio training");
        assert_eq!(names(ModelRole::Embedding, large, false, false), "embeddings");
        assert_eq!(names(ModelRole::Other, large, true, true), "");
    }

    #[test]
    #[cfg(feature = "jinja")]
    fn capabilities_of_other_templates() {
        for (text, tools, thinks) in [
            ("[INST] {{ messages[0].content }} [/INST]", false, false),
            ("{% if tools %}{{ tools }}{% endif %}[INST]", true, false),
            ("{% if enable_thinking %}<think>{% endif %}{{ messages }}", false, true),
        ] {
            let template = ChatTemplate::new(text, "", "").expect("it parses").expect("a template");
            assert_eq!((template.has_tools(), template.thinks()), (tools, thinks), "{text}");
        }
    }
}
