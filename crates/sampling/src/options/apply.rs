//! Overriding options with a partial set of them, as JSON.

use std::fmt;

use serde_json::{Map, Value};

use super::{
    SamplingOptions,
    given::{Given, kind},
};
use crate::sampling::SamplingError;

/// An option that was ignored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OptionWarning {
    /// No option has this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// A sampling hint of the model file has an unknown name or an invalid value.
    InvalidHint {
        /// The metadata key.
        name: String,
        /// The value.
        value: f64,
    },
}

impl fmt::Display for OptionWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => write!(f, "ignored the unknown option \"{name}\""),
            Self::InvalidHint { name, value } => {
                write!(f, "ignored the model file's {name} = {value}")
            }
        }
    }
}

/// Obsolete names that clients still send; they are ignored.
const OBSOLETE: [&str; 9] = [
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "tfs_z",
    "penalize_newline",
    "numa",
    "low_vram",
    "f16_kv",
    "use_mlock",
];

/// Options of the same object that apply when the model is loaded; only their types are checked here.
const LOAD_OPTIONS: [&str; 6] =
    ["num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "draft_num_predict"];

impl SamplingOptions {
    /// Overrides the options that the JSON object `layer` names; null means not given. After an error the options are
    /// unchanged.
    pub fn apply(&mut self, layer: &Value) -> Result<Vec<OptionWarning>, SamplingError> {
        let layer: &Map<String, Value> = match layer {
            Value::Null => return Ok(Vec::new()),
            Value::Object(layer) => layer,
            other => return Err(SamplingError::NotAnObject { got: kind(other) }),
        };
        let mut next = self.clone();
        let mut warnings = Vec::new();
        for (name, value) in layer.iter().filter(|(_, value)| !value.is_null()) {
            if !next.set(name, value)? {
                warnings.push(OptionWarning::Unknown { name: name.clone() });
            }
        }
        next.validate()?;
        *self = next;
        Ok(warnings)
    }

    /// Sets one option; returns false if no option has this name.
    fn set(&mut self, name: &str, value: &Value) -> Result<bool, SamplingError> {
        let given = Given { name, value };
        match name {
            "temperature" => self.temperature = given.number()?,
            "top_k" => self.top_k = given.integer()?,
            "top_p" => self.top_p = given.number()?,
            "min_p" => self.min_p = given.number()?,
            "typical_p" => self.typical_p = given.number()?,
            "repeat_penalty" => self.repeat_penalty = given.number()?,
            "repeat_last_n" => self.repeat_last_n = given.integer()?,
            "presence_penalty" => self.presence_penalty = given.number()?,
            "frequency_penalty" => self.frequency_penalty = given.number()?,
            "seed" => self.seed = given.integer()?,
            "stop" => self.stop = given.texts()?,
            "num_predict" => self.num_predict = given.integer()?,
            "ignore_eos" => self.ignore_eos = given.boolean()?,
            "num_keep" => self.num_keep = given.integer()?,
            "logit_bias" => (self.logit_bias, self.suppress) = given.biases()?,
            "dry_multiplier" => self.dry_multiplier = given.number()?,
            "dry_base" => self.dry_base = given.number()?,
            "dry_allowed_length" => self.dry_allowed_length = given.integer()?,
            "dry_penalty_last_n" => self.dry_penalty_last_n = given.integer()?,
            "dry_sequence_breakers" => self.dry_sequence_breakers = given.texts()?,
            "xtc_probability" => self.xtc_probability = given.number()?,
            "xtc_threshold" => self.xtc_threshold = given.number()?,
            "top_n_sigma" => self.top_n_sigma = given.number()?,
            "dynatemp_range" => self.dynatemp_range = given.number()?,
            "dynatemp_exponent" => self.dynatemp_exponent = given.number()?,
            "logprobs" => self.logprobs = given.boolean()?,
            "top_logprobs" => self.top_logprobs = given.integer()?,
            "use_mmap" => _ = given.boolean()?,
            _ if LOAD_OPTIONS.contains(&name) => _ = given.integer::<i64>()?,
            _ => return Ok(OBSOLETE.contains(&name)),
        }
        Ok(true)
    }
}
