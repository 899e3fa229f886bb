//! A vocabulary as a model file states it, before any check.

/// What a tokenizer is built from. Text is borrowed, so that a file's own strings can be handed over as they are.
///
/// Fields mirror the `tokenizer.ggml.*` keys of a GGUF file. Ids that the file lacks are found by their text.
#[derive(Debug, Clone, Default)]
pub struct Vocab<'a> {
    /// `tokens`: the text of each token, index = id, spaces as `▁`.
    pub tokens: Vec<&'a str>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub types: Vec<i64>,
    /// `scores`: one for each token, where the file has them. They say which merge is applied first where there are no
    /// `merges`, and are not used otherwise.
    pub scores: Option<&'a [f32]>,
    /// `merges`: "left right", the first is applied first.
    pub merges: Vec<&'a str>,
    /// `bos_token_id`: begins every prompt.
    pub bos: Option<u32>,
    /// `eos_token_id`: ends generation.
    pub eos: Option<u32>,
    /// `eos_token_ids`: more ids that end generation.
    pub eos_ids: Vec<i64>,
    /// `eot_token_id`: ends a turn, and with it generation.
    pub eot: Option<u32>,
    /// `unknown_token_id`: stands for bytes without a token.
    pub unknown: Option<u32>,
    /// `padding_token_id`.
    pub padding: Option<u32>,
    /// `mask_token_id`.
    pub mask: Option<u32>,
    /// `suppress_tokens`: ids that must never be sampled.
    pub suppress: Vec<i64>,
}
