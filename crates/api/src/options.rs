//! Sampling and load options, all optional.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::ApiError;
use crate::fields::{Field, Fields, number, whole};

/// Declares the options, their parsers and `over`.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $read:path;)*) => {
        /// Sampling, stop and load options of a request; absent ones take the model's parameters, then the server's
        /// defaults.
        ///
        /// Serialised, it is the object that `rullama-sampling` merges into its own options.
        #[derive(Debug, Clone, Default, PartialEq, Serialize)]
        pub struct Options {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)*
        }

        impl Options {
            /// Removes all options from an object. Unknown names stay.
            pub(crate) fn take(fields: &mut Fields) -> Result<Self, ApiError> {
                Ok(Self {
                    $($name: match fields.take(stringify!($name)) {
                        Some(field) => Some($read(stringify!($name), &field)?),
                        None => None,
                    },)*
                })
            }

            /// These options; absent ones are taken from `below`.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                Self { $($name: self.$name.or(below.$name),)* }
            }
        }
    };
}

options! {
    /// Divides the logits; ≤ 0: greedy.
    temperature: f32 = float;
    /// Keeps this number of tokens; ≤ 0: all.
    top_k: i32 = integer;
    /// Keeps the most likely tokens up to this cumulative probability.
    top_p: f32 = float;
    /// Keeps tokens with at least this probability relative to the best.
    min_p: f32 = float;
    /// Keeps the most typical tokens up to this cumulative probability.
    typical_p: f32 = float;
    /// Penalty for recent tokens; 1 = off.
    repeat_penalty: f32 = float;
    /// The number of recent tokens that penalties cover; −1 = whole context.
    repeat_last_n: i32 = integer;
    /// Subtracted from the logits of recent tokens.
    presence_penalty: f32 = float;
    /// Subtracted once per occurrence.
    frequency_penalty: f32 = float;
    /// Seed of the random numbers; negative = a new one per request.
    seed: i64 = seed;
    /// Texts that end the generation; none is empty.
    stop: Vec<String> = stop;
    /// Maximum number of generated tokens, including thoughts; negative = unlimited.
    num_predict: i32 = integer;
    /// Tokens at the beginning that a context shift keeps.
    num_keep: i32 = integer;
    /// Added to the logits of these tokens.
    logit_bias: BTreeMap<u32, f32> = biases;
    /// Whether end-of-generation tokens are ignored.
    ignore_eos: bool = boolean;
    /// DRY: penalty of the shortest penalised repetition; 0 = off.
    dry_multiplier: f32 = float;
    /// DRY: growth per repeated token.
    dry_base: f32 = float;
    /// DRY: repetitions shorter than this are not penalised.
    dry_allowed_length: i32 = integer;
    /// DRY: the number of recent tokens searched; −1 = whole context.
    dry_penalty_last_n: i32 = integer;
    /// DRY: texts that repetitions do not extend across.
    dry_sequence_breakers: Vec<String> = texts;
    /// XTC: probability per token that it applies.
    xtc_probability: f32 = float;
    /// XTC: tokens with at least this probability are top choices.
    xtc_threshold: f32 = float;
    /// Top-n-sigma: keeps logits within this number of standard deviations of the best.
    top_n_sigma: f32 = float;
    /// Dynamic temperature: range around the temperature.
    dynatemp_range: f32 = float;
    /// Dynamic temperature: exponent of the normalised entropy.
    dynatemp_exponent: f32 = float;
    /// Context length in tokens; loading.
    num_ctx: i32 = integer;
    /// Tokens per prefill pass; loading.
    num_batch: i32 = integer;
    /// Layers on the GPU; −1 = automatic; loading.
    num_gpu: i32 = integer;
    /// Which GPU; loading.
    main_gpu: i32 = integer;
    /// Whether files are memory-mapped; loading.
    use_mmap: bool = boolean;
    /// CPU threads; 0 = automatic; loading.
    num_thread: i32 = integer;
    /// Tokens that a drafter proposes per step; loading.
    draft_num_predict: i32 = integer;
}

impl Options {
    /// Parses an object of options. Unknown names are ignored, as in Ollama, including those of earlier releases.
    pub fn from_value(value: Value) -> Result<Self, ApiError> {
        Self::read(Field { value, path: "options".to_owned() })
    }

    pub(crate) fn read(field: Field) -> Result<Self, ApiError> {
        Self::take(&mut field.object()?)
    }

    /// Sets the token limit from another field; values beyond `i32` mean no limit but the context.
    pub(crate) fn limit(&mut self, tokens: Option<i64>) {
        if let Some(tokens) = tokens {
            self.num_predict = Some(i32::try_from(tokens).unwrap_or(i32::MAX));
        }
    }
}

fn wrong(option: &str, expected: &'static str) -> ApiError {
    ApiError::OptionType { option: option.to_owned(), expected }
}

fn float(name: &str, field: &Field) -> Result<f32, ApiError> {
    number(&field.value).ok_or_else(|| wrong(name, "float32"))
}

fn integer(name: &str, field: &Field) -> Result<i32, ApiError> {
    let value = whole(&field.value).and_then(|number| i32::try_from(number).ok());
    value.ok_or_else(|| wrong(name, "integer"))
}

/// Seeds of OpenAI clients may exceed 32 bits, those of others even 63.
fn seed(name: &str, field: &Field) -> Result<i64, ApiError> {
    let unsigned = |value: &Value| value.as_u64().map(|seed| (seed & i64::MAX as u64) as i64);
    whole(&field.value).or_else(|| unsigned(&field.value)).ok_or_else(|| wrong(name, "integer"))
}

fn boolean(name: &str, field: &Field) -> Result<bool, ApiError> {
    field.value.as_bool().ok_or_else(|| wrong(name, "boolean"))
}

fn texts(name: &str, field: &Field) -> Result<Vec<String>, ApiError> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = match &field.value {
        Value::Array(values) => values.iter().map(text).collect(),
        value => text(value).map(|text| vec![text]),
    };
    texts.ok_or_else(|| wrong(name, "array"))
}

/// Drops empty stop texts: they never match.
fn stop(name: &str, field: &Field) -> Result<Vec<String>, ApiError> {
    let mut stop = texts(name, field)?;
    stop.retain(|text| !text.is_empty());
    Ok(stop)
}

/// `{"12": 1.5}`; OpenAI's range is −100 to 100.
fn biases(_: &str, field: &Field) -> Result<BTreeMap<u32, f32>, ApiError> {
    let wrong = || field.wrong("an object of token ids and numbers from -100 to 100");
    let pairs = field.value.as_object().ok_or_else(wrong)?;
    let pair = |(id, bias): (&String, &Value)| {
        let bias = number(bias).filter(|bias| bias.abs() <= 100.0)?;
        Some((id.parse().ok()?, bias))
    };
    pairs.iter().map(pair).collect::<Option<_>>().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_checked_and_unknown_names_ignored() {
        let options = Options::from_value(json!({
            "temperature": 0, "top_k": 40.0, "stop": "end", "seed": null, "mirostat": "x", "logit_bias": {"7": -100},
        }));
        let options = options.expect("valid options");
        assert_eq!(options.temperature, Some(0.0));
        assert_eq!(options.top_k, Some(40));
        assert_eq!(options.stop, Some(vec!["end".to_owned()]));
        assert_eq!(options.seed, None);
        assert_eq!(options.logit_bias, Some(BTreeMap::from([(7, -100.0)])));

        for (object, text) in [
            (json!({"num_ctx": "8k"}), r#"option "num_ctx" must be of type integer"#),
            (json!({"top_k": 1.5}), r#"option "top_k" must be of type integer"#),
            (json!({"top_p": true}), r#"option "top_p" must be of type float32"#),
            (json!({"temperature": 1e300}), r#"option "temperature" must be of type float32"#),
            (json!({"use_mmap": 1}), r#"option "use_mmap" must be of type boolean"#),
            (json!({"stop": [1]}), r#"option "stop" must be of type array"#),
        ] {
            assert_eq!(Options::from_value(object).map_err(|e| e.to_string()), Err(text.into()));
        }
        assert!(Options::from_value(json!([])).is_err());
        assert!(Options::from_value(json!({"logit_bias": {"7": 101}})).is_err());
        assert!(Options::from_value(json!({"logit_bias": {"x": 1}})).is_err());
    }

    #[test]
    fn layers() {
        let below = Options { top_k: Some(1), top_p: Some(0.5), ..Options::default() };
        let above = Options { top_k: Some(2), ..Options::default() };
        let both = above.over(below);
        assert_eq!((both.top_k, both.top_p), (Some(2), Some(0.5)));
        assert_eq!(serde_json::to_value(&both).expect("plain"), json!({"top_k": 2, "top_p": 0.5}));
    }
}
