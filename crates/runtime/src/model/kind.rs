//! The kind of model a file holds.

use rullama_gguf::Gguf;
use rullama_models::{
    Catalog,
    decoder::Config,
    embedding::EmbeddingConfig,
    gemma4::{assistant::DraftConfig, diffusion::DiffusionConfig},
};

use super::{LoadOptions, MemoryUse};
use crate::{Denoiser, Embedder, error::RuntimeError};

/// Kind of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// Generates token by token: [`crate::Model`].
    Decoder,
    /// Computes text embeddings: [`crate::Embedder`].
    Embedding,
    /// Denoises blocks of text: [`crate::Denoiser`].
    Diffusion,
    /// Drafts tokens for a decoder: [`crate::Drafter`].
    Drafter,
}

/// Sizes that every kind of model has.
pub(super) struct Sizes {
    pub(super) layers: usize,
    pub(super) vocabulary: usize,
    pub(super) context: usize,
}

impl ModelKind {
    /// The kind by the file's header. Unknown architectures count as decoders, which are then refused with a reason.
    pub fn of(gguf: &Gguf) -> Self {
        if EmbeddingConfig::is_embedding(gguf) {
            Self::Embedding
        } else if DiffusionConfig::is_diffusion(gguf) {
            Self::Diffusion
        } else if DraftConfig::is_drafter(gguf) {
            Self::Drafter
        } else {
            Self::Decoder
        }
    }

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decoder => "decoder",
            Self::Embedding => "embedding",
            Self::Diffusion => "diffusion",
            Self::Drafter => "drafter",
        }
    }

    /// Whether it generates text.
    pub fn chats(self) -> bool {
        matches!(self, Self::Decoder | Self::Diffusion)
    }

    pub(super) fn sizes(self, gguf: &Gguf) -> Result<Sizes, RuntimeError> {
        Ok(match self {
            Self::Decoder => of_decoder(&Config::of_file(gguf)?),
            Self::Diffusion => of_decoder(&DiffusionConfig::of_file(gguf)?.decoder),
            Self::Embedding => {
                let config = EmbeddingConfig::of_file(gguf)?;
                let (layers, context) = (config.layers.len(), config.context);
                Sizes { layers, vocabulary: config.vocabulary, context }
            }
            Self::Drafter => {
                let config = DraftConfig::of_file(gguf)?;
                // The target model's context, if the file names it.
                let context = gguf.u64("gemma4-assistant.context_length").unwrap_or(0);
                let context = usize::try_from(context).unwrap_or(0);
                Sizes { layers: config.layers.len(), vocabulary: config.vocabulary, context }
            }
        })
    }

    /// Estimated GPU memory of models other than decoders; `None` for decoders.
    pub(super) fn other_memory(
        self,
        gguf: &Gguf,
        options: &LoadOptions,
    ) -> Result<Option<MemoryUse>, RuntimeError> {
        let [weights, caches, work] = match self {
            Self::Decoder => return Ok(None),
            Self::Diffusion => Denoiser::memory_of_file(gguf, options.context, options.cache)?,
            Self::Embedding => {
                let (weights, work) = Embedder::memory_of_file(gguf)?;
                [weights, 0, work]
            }
            Self::Drafter => {
                // A drafter shares the target model's KV caches and embeddings.
                let config = DraftConfig::of_file(gguf)?;
                let catalog = Catalog::of_file(gguf, &config.expected())?;
                let bytes =
                    |(name, _): (&str, _)| gguf.tensor(name).map_or(0, |tensor| tensor.nbytes());
                [catalog.iter().map(bytes).sum(), 0, 0]
            }
        };
        let context = options.context.unwrap_or(0);
        Ok(Some(MemoryUse { weights, caches, work, context, ..MemoryUse::default() }))
    }
}

fn of_decoder(config: &Config) -> Sizes {
    Sizes { layers: config.layers.len(), vocabulary: config.vocabulary, context: config.context }
}
