//! Tokenizer and chat template of a model file.

use std::collections::HashSet;

use rullama_chat::{ChatError, ChatTemplate, Family, TemplateSource};
use rullama_gguf::{Array, Gguf, GgufError, Optional, StringArray, Value};
use rullama_tokenizer::{Tokenizer, TokenizerError, Vocab};

use crate::background::Background;

/// Why a file has no usable tokenizer.
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
    /// The vocabulary is inconsistent.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// The tokenizer of a model file.
///
/// # Errors
/// If the file has no vocabulary, or a broken one.
pub fn tokenizer(gguf: &Gguf) -> Result<Tokenizer, VocabularyError> {
    FileVocabulary::new(gguf)?.tokenizer()
}

/// The vocabulary of a model file, unchecked. It shares the file's strings, so that another thread can make a tokenizer of it, which takes
/// some tenths of a second.
pub(crate) struct FileVocabulary {
    model: Option<String>,
    pre: Option<String>,
    tokens: StringArray,
    /// Usable tokens.
    count: usize,
    merges: StringArray,
    scores: Option<Vec<f32>>,
    /// All other keys; [`Self::tokenizer`] adds those above.
    rest: Vocab<'static>,
}

impl FileVocabulary {
    /// Reads the file's keys.
    pub(crate) fn new(gguf: &Gguf) -> Result<Self, VocabularyError> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let id = |name: &str| gguf.u32(&key(name)).optional();
        let text =
            |name: &str| Ok::<_, GgufError>(gguf.str(&key(name)).optional()?.map(String::from));
        let flag = |name: &str| gguf.bool(&key(name)).optional();
        let ids = |name: &str| gguf.integers(&key(name)).optional().map(Option::unwrap_or_default);
        let strings = |name: &str| gguf.strings(&key(name)).optional().map(Option::<&_>::cloned);
        let no_vocabulary = || VocabularyError::NoVocabulary { file: gguf.name().into() };
        let tokens = strings("tokens")?.ok_or_else(no_vocabulary)?;
        let merges = strings("merges")?.unwrap_or_default();
        let architecture = gguf.str("general.architecture").optional()?.unwrap_or_default();
        let count = token_count(gguf, architecture, tokens.len());
        let mut types = ids("token_type")?;
        types.truncate(count);
        let scores = match gguf.get(&key("scores")) {
            Some(Value::Array(Array::F32(scores))) => {
                Some(scores[..scores.len().min(count)].to_vec())
            }
            _ => None,
        };
        // Gemma adds no space prefix; early converters omit the key.
        let no_prefix = architecture.starts_with("gemma").then_some(false);
        let rest = Vocab {
            add_bos: flag("add_bos_token")?,
            add_eos: flag("add_eos_token")?,
            add_space_prefix: flag("add_space_prefix")?.or(no_prefix),
            types,
            bos: id("bos_token_id")?,
            eos: id("eos_token_id")?,
            eos_ids: ids("eos_token_ids")?,
            eot: id("eot_token_id")?,
            unknown: id("unknown_token_id")?,
            padding: id("padding_token_id")?,
            mask: id("mask_token_id")?,
            suppress: ids("suppress_tokens")?,
            ..Vocab::default()
        };
        Ok(Self { model: text("model")?, pre: text("pre")?, tokens, count, merges, scores, rest })
    }

    /// Number of tokens that must never be sampled, if the vocabulary is valid.
    pub(crate) fn suppressed(&self) -> usize {
        self.rest.suppress.iter().collect::<HashSet<_>>().len()
    }

    /// Starts to make the tokenizer; `None` if the vocabulary is not valid.
    pub(crate) fn start(self) -> Background<Option<Tokenizer>> {
        Background::start(|| self.tokenizer().ok())
    }

    /// The tokenizer.
    fn tokenizer(self) -> Result<Tokenizer, VocabularyError> {
        let vocab = Vocab {
            model: self.model.as_deref(),
            pre: self.pre.as_deref(),
            tokens: self.tokens.iter().take(self.count).collect(),
            scores: self.scores.as_deref(),
            merges: self.merges.iter().collect(),
            ..self.rest
        };
        Ok(Tokenizer::new(&vocab)?)
    }
}

/// Number of usable tokens. Ollama's Gemma 3 files list image placeholders that the embedding table has no rows for.
fn token_count(gguf: &Gguf, architecture: &str, listed: usize) -> usize {
    let rows = gguf.tensor("token_embd.weight").filter(|_| architecture == "gemma3");
    let rows = rows.and_then(|table| usize::try_from(table.rows()).ok());
    rows.map_or(listed, |rows| rows.min(listed))
}

/// The chat template of a model file: the file's own, or else detected by its tokens or its architecture. Files from Ollama have none.
///
/// # Errors
/// If the file's template is of no known family and cannot be executed, or a key has the wrong type.
pub fn template(gguf: &Gguf) -> Result<ChatTemplate, FamilyError> {
    Ok(with_source(gguf, ChatTemplate::of_model)??)
}

/// The file's own template, if it must be run to know how prompts are rendered; a build without the template engine hands it to
/// something that has one.
///
/// # Errors
/// If a key has the wrong type.
pub fn template_to_run(gguf: &Gguf) -> Result<Option<TemplateToRun>, GgufError> {
    with_source(gguf, |source| {
        let template = source.template.filter(|text| ChatTemplate::needs_runner(text))?;
        Some(TemplateToRun {
            template: template.into(),
            bos: source.bos.into(),
            eos: source.eos.into(),
            name: source.name.into(),
            is_of_known_family: Family::of_template(template).is_ok(),
        })
    })
}

/// A template that must be run, with what else decides how prompts are rendered; the fields are those of [`TemplateSource`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateToRun {
    /// The file's template.
    pub template: String,
    /// Text of the beginning-of-sequence token.
    pub bos: String,
    /// Text of the end-of-sequence token.
    pub eos: String,
    /// The model's name.
    pub name: String,
    /// Whether it resembles the template of a family that renders natively.
    pub is_of_known_family: bool,
}

/// A template that something else has read and runs, or why it cannot be run.
pub type GivenTemplate = Result<ChatTemplate, TemplateRefused>;

/// Why a template cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateRefused {
    /// The template engine's message.
    pub message: String,
}

/// Calls `read` with what a file says about its chat template.
fn with_source<T>(
    gguf: &Gguf,
    read: impl FnOnce(&TemplateSource<'_>) -> T,
) -> Result<T, GgufError> {
    let tokens = gguf.strings("tokenizer.ggml.tokens").optional()?;
    let token = |key: &str| -> Result<&str, GgufError> {
        let id = gguf.u32(&format!("tokenizer.ggml.{key}_token_id")).optional()?;
        let id = id.and_then(|id| usize::try_from(id).ok());
        Ok(id.and_then(|id| tokens?.get(id)).unwrap_or_default())
    };
    let architecture = gguf.str("general.architecture").optional()?.unwrap_or_default();
    let width = gguf.u32(&format!("{architecture}.embedding_length_per_layer_input")).optional()?;
    Ok(read(&TemplateSource {
        template: gguf.str("tokenizer.chat_template").optional()?,
        bos: token("bos")?,
        eos: token("eos")?,
        name: gguf.str("general.name").optional()?.unwrap_or_default(),
        architecture,
        has_token: &|text| tokens.is_some_and(|tokens| tokens.iter().any(|token| token == text)),
        has_layer_inputs: width.unwrap_or(0) > 0,
    }))
}

/// Why a file has no usable chat template.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// A key has the wrong type.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The template is of no known family and cannot be executed.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// What runs templates in place of this build cannot run this one.
    #[error(transparent)]
    Refused(#[from] TemplateRefused),
}
