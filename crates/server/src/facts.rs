//! What a model file's header says about it, as far as clients ask.

use std::{path::Path, rc::Rc};

use rullama_api::Capability;
use rullama_chat::{self as model, ChatTemplate, ModelRole, TemplateSource};
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
    /// The chat template; none if the file's cannot be used.
    template: Option<ChatTemplate>,
    /// The template of a model whose file names a renderer in place of one.
    built_in: Option<ChatTemplate>,
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
            template: template(gguf, &architecture, true),
            built_in: template(gguf, &architecture, false),
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
        let template = if config.renderer.is_some() { &self.built_in } else { &self.template };
        let images = self.vision || projectors.iter().any(|projector| projector.vision);
        let audio = self.audio || projectors.iter().any(|projector| projector.audio);
        let role = match self.kind {
            Kind::Decoder => ModelRole::Decoder,
            Kind::Diffusion => ModelRole::Diffusion,
            Kind::Embedding => ModelRole::Embedding,
            Kind::Projector | Kind::Other => ModelRole::Other,
        };
        let all = model::Capability::of_model(role, template.as_ref(), images, audio);
        all.into_iter().filter_map(ollamas_name).collect()
    }
}

/// A capability under Ollama's name, which has none for training.
fn ollamas_name(capability: model::Capability) -> Option<Capability> {
    Some(match capability {
        model::Capability::Text => Capability::Completion,
        model::Capability::Images => Capability::Vision,
        model::Capability::Audio => Capability::Audio,
        model::Capability::Tools => Capability::Tools,
        model::Capability::Thinking => Capability::Thinking,
        model::Capability::Embeddings => Capability::Embedding,
        model::Capability::Training => return None,
    })
}

/// The chat template of a file, its own one or that of its family.
fn template(gguf: &Gguf, architecture: &str, own: bool) -> Option<ChatTemplate> {
    let text = |key: &str| gguf.str(key).ok().filter(|text| !text.is_empty());
    let tokens = gguf.strings("tokenizer.ggml.tokens").ok();
    let token = |key: &str| {
        let id = usize::try_from(gguf.u32(key).ok()?).ok()?;
        tokens?.get(id)
    };
    let width = gguf.u32(&format!("{architecture}.embedding_length_per_layer_input"));
    let source = TemplateSource {
        template: text("tokenizer.chat_template").filter(|_| own),
        bos: token("tokenizer.ggml.bos_token_id").unwrap_or_default(),
        eos: token("tokenizer.ggml.eos_token_id").unwrap_or_default(),
        name: text("general.name").unwrap_or_default(),
        architecture,
        has_token: &|text| tokens.is_some_and(|tokens| tokens.iter().any(|token| token == text)),
        has_layer_inputs: width.is_ok_and(|width| width > 0),
    };
    ChatTemplate::of_model(&source).ok()
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
