//! A vocabulary as a model file states it, before any check.

/// What a tokenizer is built from. Text is borrowed, so that a file's own strings can be handed over as they are.
///
/// Fields mirror the `tokenizer.ggml.*` keys of a GGUF file. Ids that the file lacks are found by their text.
#[derive(Debug, Clone, Default)]
pub struct Vocab<'a> {
    /// `model`: `gpt2` for byte-level BPE; `llama` and `gemma4`, or nothing, for pieces of characters, which are joined
    /// by `merges` where there are any and else by `scores`.
    pub model: Option<&'a str>,
    /// `pre`: how byte-level BPE cuts text before merging.
    pub pre: Option<&'a str>,
    /// `add_bos_token`: whether a prompt begins with `bos`.
    pub add_bos: Option<bool>,
    /// `add_eos_token`: whether a text ends with `eos`.
    pub add_eos: Option<bool>,
    /// `add_space_prefix`: whether a space is put in front of text, where pieces are joined by `scores`.
    pub add_space_prefix: Option<bool>,
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
