//! Errors of reading a model.

use rullama_gguf::GgufError;

/// Why a file cannot be run as a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A key is missing or has the wrong type.
    #[error(transparent)]
    Key(#[from] GgufError),
    /// The file holds another kind of model.
    #[error("{file} holds a `{found}` model; {}", hint(found))]
    Architecture {
        /// The file.
        file: String,
        /// Its architecture.
        found: String,
    },
    /// A key has a value that no model can have.
    #[error("{key} is {value}: {why}")]
    BadKey {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// Why it is invalid.
        why: &'static str,
    },
    /// Tensors are missing.
    #[error("the file has no tensor {}; it is incomplete, or a part of a split model", list(names))]
    MissingTensors {
        /// Their names.
        names: Vec<String>,
    },
    /// A tensor's shape contradicts the keys.
    #[error(
        "tensor {name} is {found}, but {keys} imply {wanted}; the file is inconsistent, download it again"
    )]
    WrongShape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: String,
        /// The shape that the keys imply.
        wanted: String,
        /// The keys.
        keys: &'static str,
    },
    /// A file that should hold a drafter holds something else.
    #[error("{file} holds a `{found}` model, not a drafter (`gemma4-assistant`)")]
    NoDrafter {
        /// The file.
        file: String,
        /// Its architecture.
        found: String,
    },
    /// A file that should hold a text embedding model holds something else.
    #[error(
        "{file} holds a `{found}` model, which computes no embeddings; use an EmbeddingGemma model"
    )]
    NoEmbedding {
        /// The file.
        file: String,
        /// Its architecture.
        found: String,
    },
    /// The drafter belongs to another model.
    #[error("this drafter belongs to another model: its {what} {drafter}, the model's {model}")]
    OtherDrafter {
        /// The property that differs, with a verb.
        what: &'static str,
        /// The drafter's value.
        drafter: usize,
        /// The model's value.
        model: usize,
    },
    /// No kernel reads a tensor's format.
    #[error(
        "tensor {name} is stored as {format}, which is not supported; convert the model to another format"
    )]
    UnsupportedFormat {
        /// The tensor.
        name: String,
        /// Its format.
        format: &'static str,
    },
    /// A tensor has more elements than this platform can address.
    #[error(
        "tensor {name} has {elements} elements, more than a 32-bit build can address; run the model natively on a 64-bit system"
    )]
    TooManyElements {
        /// The tensor.
        name: String,
        /// Its number of elements.
        elements: u64,
    },
    /// The head size does not fit the KV cache format.
    #[error(
        "q8 KV caches need a head size that is a multiple of {step}, but this model's is {head}; use an f16 or f32 cache"
    )]
    CacheFormat {
        /// Head size.
        head: usize,
        /// What it must be a multiple of.
        step: usize,
    },
    /// An unknown tensor, which may change what the model computes.
    #[error(
        "tensor {name} is unknown, and the model would give wrong results without it; use a newer rullama or another file"
    )]
    UnknownTensor {
        /// The tensor.
        name: String,
    },
}

/// What to do with a model of another kind.
fn hint(architecture: &str) -> &'static str {
    match architecture {
        "gemma4-assistant" => "it is a drafter: load it as the drafter of its model",
        "gemma-embedding" | "gemma-embedding2" => {
            "it computes embeddings and cannot generate text: use it for embeddings"
        }
        "clip" => "it is a projector (vision and audio encoders): load it with its model",
        "diffusion-gemma" => "it is a diffusion model, which this command does not support",
        _ => "supported are gemma4, gemma3, llama, qwen2 and qwen3 models",
    }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} others", names.len() - SHOWN);
    }
    text
}
