//! What a model file's header says about it, as far as clients ask.

use std::{path::Path, rc::Rc};

use rullama_api::Capability;
use rullama_chat::Family;
use rullama_gguf::{Gguf, GgufError, TensorInfo};
use rullama_source::{FileSource, SourceError};
use rullama_store::ConfigBlob;

/// What models of an architecture do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Generates token by token.
    Decoder,
    /// Denoises blocks of text.
    Diffusion,
    /// Embeds texts.
    Embedding,
    /// A file of encoders for images and audio.
    Projector,
    /// Nothing that is served by itself.
    Other,
}

/// Facts of one file.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) architecture: String,
    pub(crate) kind: Kind,
    pub(crate) parameters: u64,
    pub(crate) context_length: Option<u64>,
    pub(crate) embedding_length: Option<u64>,
    pub(crate) vision: bool,
    pub(crate) audio: bool,
    /// Whether the file brings its own chat template.
    has_template: bool,
    /// Whether the chat template declares tools, and whether it knows thinking.
    tools_and_thinking: (bool, bool),
}

/// Why a header could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Gguf(#[from] GgufError),
}

/// Reads the header of the file at `path`.
pub(crate) fn open(path: &Path) -> Result<Gguf, HeaderError> {
    let source = Rc::new(FileSource::open(path)?);
    match pollster::block_on(Gguf::open(source)) {
        Ok(gguf) => Ok(gguf),
        Err(GgufError::Source(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

impl Facts {
    /// Reads the header of the file at `path`.
    pub(crate) fn of_file(path: &Path) -> Result<Self, HeaderError> {
        Ok(Self::of(&open(path)?))
    }

    fn of(gguf: &Gguf) -> Self {
        let architecture = gguf.str("general.architecture").unwrap_or_default().to_owned();
        let number = |key: &str| gguf.u64(&format!("{architecture}.{key}")).ok();
        let flag = |key: &str| gguf.bool(key).unwrap_or(false);
        let template = gguf.str("tokenizer.chat_template").ok().filter(|text| !text.is_empty());
        Self {
            kind: kind(&architecture, gguf),
            parameters: gguf
                .tensors()
                .iter()
                .map(TensorInfo::elements)
                .fold(0, u64::saturating_add),
            context_length: number("context_length"),
            embedding_length: number("embedding_length"),
            vision: number("vision.block_count").is_some() || flag("clip.has_vision_encoder"),
            audio: number("audio.block_count").is_some() || flag("clip.has_audio_encoder"),
            has_template: template.is_some(),
            tools_and_thinking: tools_and_thinking(&architecture, template, gguf),
            architecture,
        }
    }

    /// Whether requests can name it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.kind, Kind::Decoder | Kind::Diffusion | Kind::Embedding)
    }

    /// What a model can do; encoders may be inside its file or in files of their own.
    pub(crate) fn capabilities(
        &self,
        config: &ConfigBlob,
        projectors: &[std::sync::Arc<Self>],
    ) -> Vec<Capability> {
        if self.kind == Kind::Embedding {
            return vec![Capability::Embedding];
        }
        // Ollama's files of Gemma 4 name a renderer in place of a template; without either, the built-in one is used.
        let built_in = config.renderer.is_some() || !self.has_template;
        let is_gemma4 = matches!(self.architecture.as_str(), "gemma4" | "diffusion-gemma");
        let (tools, thinking) =
            if built_in && is_gemma4 { (true, true) } else { self.tools_and_thinking };
        // Of other families, encoders are not run.
        let encodes = self.architecture == "gemma4";
        let has = |what: fn(&Self) -> bool| {
            encodes && (what(self) || projectors.iter().any(|projector| what(projector)))
        };
        let (vision, audio) = (has(|facts| facts.vision), has(|facts| facts.audio));
        let all = [
            (Capability::Completion, true),
            (Capability::Vision, vision),
            (Capability::Audio, audio),
            (Capability::Tools, tools),
            (Capability::Thinking, thinking),
        ];
        all.into_iter().filter(|(_, has)| *has).map(|(capability, _)| capability).collect()
    }
}

/// What the runtime would take the file for.
fn kind(architecture: &str, gguf: &Gguf) -> Kind {
    match architecture {
        "diffusion-gemma" => Kind::Diffusion,
        "gemma-embedding" | "gemma-embedding2" => Kind::Embedding,
        // Early files of EmbeddingGemma are called after the decoder they were made of.
        "gemma3" if gguf.tensor("dense.0.weight").is_some() => Kind::Embedding,
        "gemma4" | "gemma3" | "llama" | "qwen2" | "qwen3" => Kind::Decoder,
        "clip" => Kind::Projector,
        _ => Kind::Other,
    }
}

/// What the chat template of a file, or the one its tokens call for, supports.
fn tools_and_thinking(architecture: &str, template: Option<&str>, gguf: &Gguf) -> (bool, bool) {
    let family = match template.map(|text| (text, Family::of_template(text))) {
        // A template of no known family is run as it is.
        Some((text, Err(_) | Ok(None))) => return (text.contains("tools"), thinks(text)),
        Some((_, Ok(family))) => family,
        None => {
            let tokens = gguf.strings("tokenizer.ggml.tokens").ok();
            let has =
                |text: &str| tokens.is_some_and(|tokens| tokens.iter().any(|token| token == text));
            let usual = if architecture == "gemma3" { Family::Gemma3 } else { Family::ChatMl };
            Some(Family::of_vocabulary(has).unwrap_or(usual))
        }
    };
    family.map_or((false, false), |family| (family.has_tools(), family.thinks()))
}

fn thinks(template: &str) -> bool {
    ["enable_thinking", "<|think|>", "<think>"].iter().any(|word| template.contains(word))
}
