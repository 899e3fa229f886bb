//! From a model file to its tokenizer and its template family.

use rullama_chat::{ChatError, Family};
use rullama_gguf::{Array, Gguf, GgufError, Optional, Value};
use rullama_tokenizer::{Tokenizer, TokenizerError, Vocab};

/// Why a file gives no tokenizer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VocabularyError {
    /// The file has no vocabulary at all.
    #[error(
        "{file} has no vocabulary: it is a projector, an adapter or a later part of a split model; give the model itself"
    )]
    NoVocabulary {
        /// The file.
        file: String,
    },
    /// A key has the wrong type.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The vocabulary contradicts itself.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// The tokenizer of a model file.
///
/// # Errors
/// If the file has no vocabulary, or a broken one.
pub fn tokenizer(gguf: &Gguf) -> Result<Tokenizer, VocabularyError> {
    Ok(Tokenizer::new(&vocabulary(gguf)?)?)
}

/// The vocabulary of a model file, as the file states it.
///
/// # Errors
/// If the file has none, or a key has the wrong type.
pub fn vocabulary(gguf: &Gguf) -> Result<Vocab<'_>, VocabularyError> {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let id = |name: &str| gguf.u32(&key(name)).optional();
    let text = |name: &str| gguf.str(&key(name)).optional();
    let flag = |name: &str| gguf.bool(&key(name)).optional();
    let ids = |name: &str| gguf.integers(&key(name)).optional().map(Option::unwrap_or_default);
    let no_vocabulary = || VocabularyError::NoVocabulary { file: gguf.name().into() };
    let tokens = gguf.strings(&key("tokens")).optional()?.ok_or_else(no_vocabulary)?;
    let merges = gguf.strings(&key("merges")).optional()?;
    Ok(Vocab {
        model: text("model")?,
        pre: text("pre")?,
        add_bos: flag("add_bos_token")?,
        add_eos: flag("add_eos_token")?,
        add_space_prefix: flag("add_space_prefix")?,
        tokens: tokens.iter().collect(),
        types: ids("token_type")?,
        scores: match gguf.get(&key("scores")) {
            Some(Value::Array(Array::F32(scores))) => Some(scores),
            _ => None,
        },
        merges: merges.map(|merges| merges.iter().collect()).unwrap_or_default(),
        bos: id("bos_token_id")?,
        eos: id("eos_token_id")?,
        eos_ids: ids("eos_token_ids")?,
        eot: id("eot_token_id")?,
        unknown: id("unknown_token_id")?,
        padding: id("padding_token_id")?,
        mask: id("mask_token_id")?,
        suppress: ids("suppress_tokens")?,
    })
}

/// The template family of a model file: by its template, else by its tokens, else by its architecture.
///
/// Files from Ollama carry no template; per-layer inputs tell the small Gemma 4 models from the large ones.
///
/// # Errors
/// If the file has another model's template, or a key has the wrong type.
pub fn family(gguf: &Gguf) -> Result<Family, FamilyError> {
    let template = gguf.str("tokenizer.chat_template").optional()?;
    if let Some(family) = template.map(Family::of_template).transpose()?.flatten() {
        return Ok(family);
    }
    let architecture = gguf.str("general.architecture").optional()?.unwrap_or_default();
    let tokens = gguf.strings("tokenizer.ggml.tokens").optional()?;
    let has = |text: &str| tokens.is_some_and(|tokens| tokens.iter().any(|token| token == text));
    if let Some(family) = Family::of_vocabulary(has) {
        return Ok(family);
    }
    let width = gguf.u32(&format!("{architecture}.embedding_length_per_layer_input")).optional()?;
    Ok(if width.unwrap_or(0) > 0 { Family::Small } else { Family::Large })
}

/// Why a file's template family cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// A key has the wrong type.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The template is another model's.
    #[error(transparent)]
    Chat(#[from] ChatError),
}
