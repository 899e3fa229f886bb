//! A vocabulary as the model file has it, not yet validated.

/// The input of [`Tokenizer::new`](crate::Tokenizer::new). Texts are borrowed, so that a file's strings need not be copied.
///
/// Fields mirror the `tokenizer.ggml.*` keys of a GGUF file. Special ids that the file lacks are looked up by text.
#[derive(Debug, Clone, Default)]
pub struct Vocab<'a> {
    /// `model`: `gpt2` for byte-level BPE; `llama`, `gemma4` or absent for BPE over characters, which is merged by `merges`
    /// if the file has them, else by `scores`.
    pub model: Option<&'a str>,
    /// `pre`: the pre-tokenizer of byte-level BPE.
    pub pre: Option<&'a str>,
    /// `add_bos_token`: whether a prompt begins with `bos`.
    pub add_bos: Option<bool>,
    /// `add_eos_token`: whether a text ends with `eos`.
    pub add_eos: Option<bool>,
    /// `add_space_prefix`: whether a space is added before text, for vocabularies with `scores`.
    pub add_space_prefix: Option<bool>,
    /// `tokens`: the text of each token, index = id, spaces as `▁`.
    pub tokens: Vec<&'a str>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub types: Vec<i64>,
    /// `scores`: one per token, or empty. They rank the merges if there are no `merges`, and are unused otherwise.
    pub scores: Option<&'a [f32]>,
    /// `merges`: "left right", highest priority first.
    pub merges: Vec<&'a str>,
    /// `bos_token_id`: begins every prompt.
    pub bos: Option<u32>,
    /// `eos_token_id`: ends generation.
    pub eos: Option<u32>,
    /// `eos_token_ids`: more ids that end generation.
    pub eos_ids: Vec<i64>,
    /// `eot_token_id`: ends a turn, and with it generation.
    pub eot: Option<u32>,
    /// `unknown_token_id`: for bytes without a token.
    pub unknown: Option<u32>,
    /// `padding_token_id`.
    pub padding: Option<u32>,
    /// `mask_token_id`.
    pub mask: Option<u32>,
    /// `suppress_tokens`: ids that must never be sampled.
    pub suppress: Vec<i64>,
}
