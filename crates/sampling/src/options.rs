//! Options for sampling and stopping: defaults, layers and checks.

mod apply;
mod given;
mod hints;
mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use apply::OptionWarning;

/// How tokens are sampled and when generation ends, under the names of Ollama's `options` and llama.cpp's
/// server.
///
/// The default is Gemma 4's generation configuration. It is overridden by the file's hints
/// ([`Self::apply_hints`]), then by the model's parameters, then by the request (both [`Self::apply`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplingOptions {
    /// Divides the logits; ≤ 0 = always the best token.
    pub temperature: f32,
    /// Keeps this many tokens; ≤ 0 = all.
    pub top_k: i32,
    /// Keeps the most likely tokens up to this cumulative probability; ≥ 1 = off.
    pub top_p: f32,
    /// Keeps tokens at least this likely relative to the best; 0 = off.
    pub min_p: f32,
    /// Keeps the most typical tokens up to this cumulative probability; ≥ 1 = off.
    pub typical_p: f32,
    /// Divides positive logits of recent tokens and multiplies others; 1 = off.
    pub repeat_penalty: f32,
    /// Number of recent tokens the three penalties apply to; 0 = off, −1 = whole context.
    pub repeat_last_n: i32,
    /// Subtracted from the logits of recent tokens; 0 = off.
    pub presence_penalty: f32,
    /// Subtracted once per occurrence; 0 = off.
    pub frequency_penalty: f32,
    /// Seed of the random numbers; negative = a new one per request.
    pub seed: i64,
    /// Stop strings.
    pub stop: Vec<String>,
    /// Maximum number of tokens to generate; negative = unlimited.
    pub num_predict: i32,
    /// Whether tokens that end a reply are passed over instead, so that only `num_predict`, stop strings or the context end it.
    pub ignore_eos: bool,
    /// Tokens at the beginning that are kept when the context is shifted.
    pub num_keep: i32,
    /// Added to the logits of these tokens.
    pub logit_bias: BTreeMap<u32, f32>,
    /// Tokens that are never chosen.
    pub suppress: Vec<u32>,
    /// DRY: penalty of the shortest repetition that counts; 0 = off.
    pub dry_multiplier: f32,
    /// DRY: growth per repeated token; below 1 = off.
    pub dry_base: f32,
    /// DRY: repetitions shorter than this are not penalised.
    pub dry_allowed_length: i32,
    /// DRY: number of recent tokens searched; 0 = off, −1 = whole context.
    pub dry_penalty_last_n: i32,
    /// DRY: texts that end a repetition.
    pub dry_sequence_breakers: Vec<String>,
    /// XTC: probability per token that it is applied; 0 = off.
    pub xtc_probability: f32,
    /// XTC: tokens at least this likely are top choices; above 0.5 = off.
    pub xtc_threshold: f32,
    /// Keeps logits within this many standard deviations of the best; ≤ 0 = off.
    pub top_n_sigma: f32,
    /// Dynamic temperature: range to both sides of `temperature`, by entropy; 0 = off.
    pub dynatemp_range: f32,
    /// Dynamic temperature: exponent of the normalised entropy.
    pub dynatemp_exponent: f32,
    /// Mirostat version, 1 or 2; 0 = off. [`Self::apply`] ignores it, as Ollama does.
    pub mirostat: u8,
    /// Mirostat's target surprise in bits.
    pub mirostat_tau: f32,
    /// Mirostat's learning rate.
    pub mirostat_eta: f32,
    /// Whether to return the log-probability of every token.
    pub logprobs: bool,
    /// Number of most likely tokens to return with it, at most 20.
    pub top_logprobs: u8,
}

impl Default for SamplingOptions {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 64, top_p: 0.95, ..Self::ollama() }
    }
}

impl SamplingOptions {
    /// Ollama's built-in values, for models without their own defaults.
    pub fn ollama() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.9,
            min_p: 0.0,
            typical_p: 1.0,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            seed: -1,
            stop: Vec::new(),
            num_predict: -1,
            ignore_eos: false,
            num_keep: 4,
            logit_bias: BTreeMap::new(),
            suppress: Vec::new(),
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_penalty_last_n: 64,
            dry_sequence_breakers: ["\n", ":", "\"", "*"].map(String::from).to_vec(),
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            top_n_sigma: -1.0,
            dynatemp_range: 0.0,
            dynatemp_exponent: 1.0,
            mirostat: 0,
            mirostat_tau: 5.0,
            mirostat_eta: 0.1,
            logprobs: false,
            top_logprobs: 0,
        }
    }
}

/// The seed of a request: its option, or `entropy` if the option is negative.
///
/// Generators take 32 bits, so only the low half of a larger seed counts.
pub fn resolve_seed(option: i64, entropy: u32) -> u32 {
    if option < 0 { entropy } else { (option & i64::from(u32::MAX)) as u32 }
}
