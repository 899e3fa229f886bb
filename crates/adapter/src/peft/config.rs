//! `adapter_config.json`: rank, alpha and the features it needs.

use regex_lite::Regex;
use serde_json::{Map, Value};

use crate::{container::Container, error::AdapterError};

/// Fields of features that would change the output and are not implemented.
const REFUSED: [(&str, &str); 12] = [
    ("use_dora", "magnitudes (DoRA)"),
    ("lora_bias", "LoRA biases (lora_bias)"),
    ("fan_in_fan_out", "transposed weights (fan_in_fan_out)"),
    ("modules_to_save", "fully trained modules (modules_to_save)"),
    ("target_parameters", "expert LoRA pairs in the PEFT format (target_parameters)"),
    ("trainable_token_indices", "trained tokens (trainable_token_indices)"),
    ("layer_replication", "replicated layers (layer_replication)"),
    ("alora_invocation_tokens", "invocation tokens (aLoRA)"),
    ("use_qalora", "QALoRA"),
    ("use_bdlora", "BD-LoRA"),
    ("velora_config", "VeLoRA"),
    ("arrow_config", "routing between adapters (Arrow)"),
];

/// The fields of a configuration that matter here.
pub(super) struct Config {
    rank: usize,
    alpha: f32,
    rank_stabilised: bool,
    ranks: Vec<(Regex, usize)>,
    alphas: Vec<(Regex, f32)>,
    base_model: Option<String>,
}

impl Config {
    pub(super) fn parse(text: &str) -> Result<Self, AdapterError> {
        let bad = |why: String| AdapterError::BadConfig { why };
        let fields: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        let kind = fields.get("peft_type").and_then(Value::as_str).unwrap_or("LORA");
        if kind != "LORA" {
            return Err(bad(format!("peft_type is {kind:?}, only \"LORA\" is supported")));
        }
        for (field, feature) in REFUSED {
            if fields.get(field).is_some_and(is_set) {
                return Err(AdapterError::Unsupported { what: feature });
            }
        }
        if fields.get("bias").is_some_and(|bias| bias != "none" && !bias.is_null()) {
            return Err(AdapterError::Unsupported { what: "trained biases (bias)" });
        }
        let rank = fields.get("r").ok_or_else(|| bad("r is missing".into()))?;
        let alpha = fields.get("lora_alpha").ok_or_else(|| bad("lora_alpha is missing".into()))?;
        Ok(Self {
            rank: rank_of("r", rank)?,
            alpha: alpha_of("lora_alpha", alpha)?,
            rank_stabilised: fields.get("use_rslora").and_then(Value::as_bool).unwrap_or(false),
            ranks: patterns(&fields, "rank_pattern", rank_of)?,
            alphas: patterns(&fields, "alpha_pattern", alpha_of)?,
            base_model: fields
                .get("base_model_name_or_path")
                .and_then(Value::as_str)
                .map(str::to_owned),
        })
    }

    /// From the metadata of a file without `adapter_config.json`: the whole configuration, or rank and alpha.
    pub(super) fn from_metadata(file: &Container) -> Result<Option<Self>, AdapterError> {
        if let Some(text) = file.metadata("adapter_config") {
            return Self::parse(text).map(Some);
        }
        let rank = file.metadata("r").or_else(|| file.metadata("rank"));
        let alpha = file.metadata("lora_alpha").or_else(|| file.metadata("alpha"));
        let (Some(rank), Some(alpha)) = (rank, alpha) else { return Ok(None) };
        let stabilised =
            file.metadata("use_rslora").is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let number = |text: &str| {
            text.trim().parse::<serde_json::Number>().map_or(Value::Null, Value::Number)
        };
        Ok(Some(Self {
            rank: rank_of("r", &number(rank))?,
            alpha: alpha_of("lora_alpha", &number(alpha))?,
            rank_stabilised: stabilised,
            ranks: Vec::new(),
            alphas: Vec::new(),
            base_model: None,
        }))
    }

    pub(super) fn base_model(&self) -> Option<&str> {
        self.base_model.as_deref()
    }

    /// Factor of a module's `B A`.
    pub(super) fn scale(
        &self,
        module: &str,
        tensor: &str,
        found: usize,
    ) -> Result<f32, AdapterError> {
        let wanted = matching(&self.ranks, module).unwrap_or(self.rank);
        if found != wanted {
            return Err(AdapterError::WrongRank { tensor: tensor.into(), found, wanted });
        }
        let alpha = matching(&self.alphas, module).unwrap_or(self.alpha);
        let rank = wanted as f32;
        Ok(alpha / if self.rank_stabilised { rank.sqrt() } else { rank })
    }
}

/// Whether a field enables a feature: it is not null, false or empty.
fn is_set(field: &Value) -> bool {
    match field {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(items) => !items.is_empty(),
        _ => true,
    }
}

fn rank_of(key: &'static str, value: &Value) -> Result<usize, AdapterError> {
    let rank = value.as_u64().and_then(|rank| usize::try_from(rank).ok()).filter(|rank| *rank > 0);
    let (text, wanted) = (value.to_string(), "a whole number above 0");
    rank.ok_or(AdapterError::BadNumber { key, value: text, wanted })
}

fn alpha_of(key: &'static str, value: &Value) -> Result<f32, AdapterError> {
    let alpha = value.as_f64().map(|alpha| alpha as f32).filter(|alpha| alpha.is_finite());
    let (text, wanted) = (value.to_string(), "a number");
    alpha.ok_or(AdapterError::BadNumber { key, value: text, wanted })
}

/// Overrides by module. PEFT treats keys as regular expressions that match the end of a module path.
fn patterns<T>(
    fields: &Map<String, Value>,
    key: &'static str,
    number: impl Fn(&'static str, &Value) -> Result<T, AdapterError>,
) -> Result<Vec<(Regex, T)>, AdapterError> {
    let Some(field) = fields.get(key).filter(|field| !field.is_null()) else {
        return Ok(Vec::new());
    };
    let Value::Object(items) = field else {
        return Err(AdapterError::BadConfig { why: format!("{key} is not an object") });
    };
    let one = |(pattern, value): (&String, &Value)| {
        let bad = |error: regex_lite::Error| AdapterError::BadPattern {
            pattern: pattern.clone(),
            why: error.to_string(),
        };
        let anchored = Regex::new(&format!(r"^(?:.*\.)?(?:{pattern})$")).map_err(bad)?;
        Ok((anchored, number(key, value)?))
    };
    items.iter().map(one).collect()
}

fn matching<T: Copy>(patterns: &[(Regex, T)], module: &str) -> Option<T> {
    patterns.iter().find(|(pattern, _)| pattern.is_match(module)).map(|(_, value)| *value)
}
