//! Laying a partial set of options, as JSON, over the ones below.

use std::fmt;

use serde_json::{Map, Value};

use super::{
    SamplingOptions,
    given::{Given, kind},
};
use crate::sampling::SamplingError;

/// Something in a layer of options that was passed over.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OptionWarning {
    /// No option has this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// A model file suggests a value that has no meaning.
    UselessHint {
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
            Self::UselessHint { name, value } => {
                write!(f, "ignored the model file's {name} = {value}")
            }
        }
    }
}

/// Names clients still send although nothing listens to them any more.
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

/// Options of the same object that are read where the model is loaded; here only their types are checked.
const OF_LOADING: [&str; 6] =
    ["num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "draft_num_predict"];

impl SamplingOptions {
    /// Lays the options that `layer` names over these: a JSON object, where null means not given. All or
    /// nothing: after an error the options are as before.
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

    /// Sets one option; false when no option has this name.
    fn set(&mut self, name: &str, value: &Value) -> Result<bool, SamplingError> {
        let given = Given { name, value };
        match name {
            "temperature" => self.temperature = given.number()?,
            "top_k" => self.top_k = given.whole()?,
            "top_p" => self.top_p = given.number()?,
            "min_p" => self.min_p = given.number()?,
            "typical_p" => self.typical_p = given.number()?,
            "repeat_penalty" => self.repeat_penalty = given.number()?,
            "repeat_last_n" => self.repeat_last_n = given.whole()?,
            "presence_penalty" => self.presence_penalty = given.number()?,
            "frequency_penalty" => self.frequency_penalty = given.number()?,
            "seed" => self.seed = given.whole()?,
            "stop" => self.stop = given.texts()?,
            "num_predict" => self.num_predict = given.whole()?,
            "num_keep" => self.num_keep = given.whole()?,
            "logit_bias" => (self.logit_bias, self.suppress) = given.biases()?,
            "dry_multiplier" => self.dry_multiplier = given.number()?,
            "dry_base" => self.dry_base = given.number()?,
            "dry_allowed_length" => self.dry_allowed_length = given.whole()?,
            "dry_penalty_last_n" => self.dry_penalty_last_n = given.whole()?,
            "dry_sequence_breakers" => self.dry_sequence_breakers = given.texts()?,
            "xtc_probability" => self.xtc_probability = given.number()?,
            "xtc_threshold" => self.xtc_threshold = given.number()?,
            "top_n_sigma" => self.top_n_sigma = given.number()?,
            "dynatemp_range" => self.dynatemp_range = given.number()?,
            "dynatemp_exponent" => self.dynatemp_exponent = given.number()?,
            "logprobs" => self.logprobs = given.truth()?,
            "top_logprobs" => self.top_logprobs = given.whole()?,
            "use_mmap" => _ = given.truth()?,
            _ if OF_LOADING.contains(&name) => _ = given.whole::<i64>()?,
            _ => return Ok(OBSOLETE.contains(&name)),
        }
        Ok(true)
    }
}
