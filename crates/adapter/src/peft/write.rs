//! Writing what PEFT loads.

use std::collections::{BTreeMap, HashMap};

use safetensors::{Dtype, tensor::TensorView};
use serde_json::{Map, Value, json};

use crate::{Adapter, EMBEDDING, Pair, error::AdapterError, halves::transposed, names};

/// The two files of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeftFiles {
    /// `adapter_config.json`.
    pub config: String,
    /// `adapter_model.safetensors`; its metadata holds the configuration too, so that it can stand alone.
    pub weights: Vec<u8>,
}

impl PeftFiles {
    /// What the configuration is called.
    pub const CONFIG: &'static str = "adapter_config.json";
    /// What the weights are called.
    pub const WEIGHTS: &'static str = "adapter_model.safetensors";
}

pub(crate) fn write(adapter: &Adapter, base_model: &str) -> Result<PeftFiles, AdapterError> {
    let module = |pair: &Pair| {
        let unknown = || AdapterError::NoPeftName { tensor: pair.tensor.clone() };
        names::module(&pair.tensor).ok_or_else(unknown)
    };
    let modules: Vec<String> = adapter.pairs.iter().map(module).collect::<Result<_, _>>()?;
    let config = config(adapter, &modules, base_model);
    let config = serde_json::to_string_pretty(&config)
        .map_err(|error| AdapterError::Write { why: error.to_string() })?;

    let mut tensors = BTreeMap::new();
    for (pair, module) in adapter.pairs.iter().zip(&modules) {
        let &Pair { rank, rows, columns, .. } = pair;
        let path = format!("base_model.model.{module}");
        if pair.tensor == EMBEDDING {
            let (a, b) = (transposed(&pair.b, rows, rank), transposed(&pair.a, rank, columns));
            tensors.insert(format!("{path}.lora_embedding_A"), ([rank, rows], bytes(&a)));
            tensors.insert(format!("{path}.lora_embedding_B"), ([columns, rank], bytes(&b)));
        } else {
            tensors.insert(format!("{path}.lora_A.weight"), ([rank, columns], bytes(&pair.a)));
            tensors.insert(format!("{path}.lora_B.weight"), ([rows, rank], bytes(&pair.b)));
        }
    }
    let bad = |error: safetensors::SafeTensorError| AdapterError::Write { why: error.to_string() };
    let views: Vec<(&String, TensorView<'_>)> = tensors
        .iter()
        .map(|(name, (shape, bytes))| {
            Ok((name, TensorView::new(Dtype::F32, shape.to_vec(), bytes)?))
        })
        .collect::<Result<_, _>>()
        .map_err(bad)?;
    let said = [("format".to_owned(), "pt".to_owned()), ("adapter_config".into(), config.clone())];
    let metadata: HashMap<String, String> = said.into_iter().collect();
    let weights = safetensors::serialize(views, Some(metadata)).map_err(bad)?;
    Ok(PeftFiles { config, weights })
}

/// Rank and alpha of the first pair for all, and those of pairs that differ by name.
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

/// Whole numbers without a point, as people write them.
fn number(value: f32) -> Value {
    let whole = value as i64;
    if whole as f32 == value { json!(whole) } else { json!(f64::from(value)) }
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
