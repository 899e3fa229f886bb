//! Writing PEFT files.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::{
    Adapter, EMBEDDING, Pair,
    container::{bytes_of, header},
    error::AdapterError,
    halves::transposed,
    names,
};

/// The two files of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeftFiles {
    /// `adapter_config.json`.
    pub config: String,
    /// `adapter_model.safetensors`; its metadata holds the configuration too, so that it can be used without the other file.
    pub weights: Vec<u8>,
}

impl PeftFiles {
    /// File name of the configuration.
    pub const CONFIG: &'static str = "adapter_config.json";
    /// File name of the weights.
    pub const WEIGHTS: &'static str = "adapter_model.safetensors";
}

/// PEFT's two files in pieces that are serialised one at a time, since a whole file takes as much memory as the adapter.
pub struct PeftPieces<'a> {
    /// `adapter_config.json`.
    pub config: String,
    /// Header of `adapter_model.safetensors`.
    header: Vec<u8>,
    halves: Vec<Written<'a>>,
}

/// A tensor of the file.
struct Written<'a> {
    name: String,
    shape: [usize; 2],
    values: &'a [f32],
    /// Whether the file stores it transposed.
    transposed: bool,
}

impl PeftPieces<'_> {
    /// The bytes of `adapter_model.safetensors`, one piece after the other.
    pub fn weights(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let tensor = |half: &Written<'_>| {
            let [rows, columns] = half.shape;
            match half.transposed {
                true => bytes_of(&transposed(half.values, columns, rows)),
                false => bytes_of(half.values),
            }
        };
        let tensors = self.halves.iter().map(move |half| Cow::Owned(tensor(half)));
        std::iter::once(Cow::Borrowed(&self.header[..])).chain(tensors)
    }

    /// Both files as a whole.
    pub fn whole(self) -> PeftFiles {
        let weights = self.weights().fold(Vec::new(), |mut all, piece| {
            all.extend_from_slice(&piece);
            all
        });
        PeftFiles { config: self.config, weights }
    }
}

pub(crate) fn pieces<'a>(
    adapter: &'a Adapter,
    base_model: &str,
) -> Result<PeftPieces<'a>, AdapterError> {
    let module = |pair: &Pair| {
        let unknown = || AdapterError::NoPeftName { tensor: pair.tensor.clone() };
        names::module(&pair.tensor).ok_or_else(unknown)
    };
    let modules: Vec<String> = adapter.pairs.iter().map(module).collect::<Result<_, _>>()?;
    let config = config(adapter, &modules, base_model);
    let config = serde_json::to_string_pretty(&config)
        .map_err(|error| AdapterError::Write { why: error.to_string() })?;
    let mut halves = Vec::new();
    for (pair, module) in adapter.pairs.iter().zip(&modules) {
        let &Pair { rank, rows, columns, .. } = pair;
        let transposed = pair.tensor == EMBEDDING;
        let written = |end: &str, shape, values| {
            let name = format!("base_model.model.{module}.{end}");
            Written { name, shape, values, transposed }
        };
        halves.extend(if transposed {
            [
                written("lora_embedding_A", [rank, rows], &pair.b[..]),
                written("lora_embedding_B", [columns, rank], &pair.a[..]),
            ]
        } else {
            [
                written("lora_A.weight", [rank, columns], &pair.a[..]),
                written("lora_B.weight", [rows, rank], &pair.b[..]),
            ]
        });
    }
    let metadata =
        [("format".to_owned(), "pt".to_owned()), ("adapter_config".into(), config.clone())];
    let tensors = halves.iter().map(|half| (half.name.clone(), half.shape.to_vec()));
    let header = header(metadata.into(), tensors)?;
    Ok(PeftPieces { config, header, halves })
}

/// Rank and alpha of the first pair as defaults, and overrides for pairs that differ.
fn config(adapter: &Adapter, modules: &[String], base_model: &str) -> Value {
    let (rank, alpha) = adapter.pairs.first().map_or((1, 1.0), |pair| (pair.rank, alpha_of(pair)));
    let (mut ranks, mut alphas) = (Map::new(), Map::new());
    for (pair, module) in adapter.pairs.iter().zip(modules) {
        if pair.rank != rank {
            ranks.insert(module.clone(), json!(pair.rank));
        }
        if alpha_of(pair) != alpha {
            alphas.insert(module.clone(), number(alpha_of(pair)));
        }
    }
    json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "r": rank,
        "lora_alpha": number(alpha),
        "lora_dropout": 0.0,
        "rank_pattern": ranks,
        "alpha_pattern": alphas,
        "target_modules": modules,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "init_lora_weights": true,
        "modules_to_save": null,
        "use_dora": false,
        "use_rslora": false,
    })
}

/// α of a pair, if its scale is α / r.
fn alpha_of(pair: &Pair) -> f32 {
    pair.scale * pair.rank as f32
}

/// Integers without a decimal point, as PEFT writes them.
fn number(value: f32) -> Value {
    let whole = value as i64;
    if whole as f32 == value { json!(whole) } else { json!(f64::from(value)) }
}
