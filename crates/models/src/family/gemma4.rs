//! Gemma 4: E2B, E4B, 12B, 31B and the mixture of experts 26B-A4B; DiffusionGemma's decoder, with another prefix of keys.
//!
//! All norms there are, scores that need no scale, a soft cap of logits. Some models share KV caches among layers, have inputs for each layer,
//! or a mixture of experts.

use rullama_engine::ops::{Activation, RopePairs, Router};
use rullama_gguf::{Array, Value};

use super::Family;
use crate::{
    decoder::{Config, Experts, Kind, Layer, PerLayer, Rope},
    error::ModelError,
    keys::Keys,
};

/// Gemma 4.
pub static GEMMA4: Family = Family {
    architecture: "gemma4",
    post_norms: true,
    qk_norm: true,
    v_norm: true,
    pairs: RopePairs::Halves,
    activation: Activation::Gelu,
    scaled_embeddings: true,
    global_image_blocks: false,
    skips_tensors: true,
    read: |family, gguf| read(family, &Keys { gguf, prefix: family.architecture }),
};

/// Reads the keys of a Gemma 4 decoder; related models use another prefix.
pub(crate) fn read(family: &'static Family, keys: &Keys<'_>) -> Result<Config, ModelError> {
    let count = keys.layer_count()?;
    let kinds = keys.kinds(count)?;
    let shared = keys.optional("attention.shared_kv_layers")?.unwrap_or(0);
    let experts = match keys.optional("expert_count")?.unwrap_or(0) {
        0 => None,
        count => Some(keys.experts(count)?),
    };
    let per_layer = match keys.optional("embedding_length_per_layer_input")?.unwrap_or(0) {
        0 => None,
        width => Some(PerLayer { width }),
    };
    let config = Config {
        family,
        width: keys.positive("embedding_length")?,
        heads: keys.positive("attention.head_count")?,
        vocabulary: keys.vocabulary(),
        context: keys.positive("context_length")?,
        window: keys.positive("attention.sliding_window")?,
        eps: keys.float("attention.layer_norm_rms_epsilon", None)?,
        softcap: Some(keys.float("final_logit_softcapping", Some(30.0))?),
        attention_scale: 1.0,
        rope: Rope {
            sliding: keys.float("rope.freq_base_swa", Some(1e4))?,
            global: keys.float("rope.freq_base", None)?,
            linear: 1.0,
        },
        per_layer,
        experts,
        layers: keys.layers(&kinds, shared)?,
        layer_scale: "layer_output_scale",
    };
    config.check(keys)?;
    Ok(config)
}

impl Keys<'_> {
    pub(crate) fn kinds(&self, layers: usize) -> Result<Vec<Kind>, ModelError> {
        let name = "attention.sliding_window_pattern";
        let kind = |sliding: bool| if sliding { Kind::Sliding } else { Kind::Global };
        let kinds: Vec<Kind> = match self.gguf.get(&self.key(name)) {
            Some(Value::Array(Array::Bool(sliding))) => sliding.iter().copied().map(kind).collect(),
            // A period: the last layer of each is global.
            Some(value) => {
                let period = value.integer().and_then(|value| usize::try_from(value).ok());
                let period = period.filter(|period| *period > 0);
                let period = period.ok_or_else(|| {
                    self.bad(name, &"of another type", "it must be one boolean per layer")
                })?;
                (1..=layers).map(|layer| kind(!layer.is_multiple_of(period))).collect()
            }
            None => {
                return Err(self.bad(name, &"missing", "it must be one boolean per layer"));
            }
        };
        if kinds.len() == layers {
            return Ok(kinds);
        }
        Err(self.bad(name, &format!("{} values", kinds.len()), "there must be one per layer"))
    }

    fn layers(&self, kinds: &[Kind], shared: usize) -> Result<Vec<Layer>, ModelError> {
        let heads = |swa: &str| -> Result<usize, ModelError> {
            let keys = self.positive(&format!("attention.key_length{swa}"))?;
            match self.optional(&format!("attention.value_length{swa}"))? {
                Some(values) if values != keys => Err(self.bad(
                    &format!("attention.value_length{swa}"),
                    &values,
                    "keys and values must have the same length",
                )),
                _ => Ok(keys),
            }
        };
        let (sliding, global) = (heads("_swa")?, heads("")?);
        let mut kv_heads = self.per_layer("attention.head_count_kv", kinds.len())?;
        if let Some(count) = self.optional("attention.global_head_count_kv")? {
            let global = kv_heads.iter_mut().zip(kinds).filter(|(_, kind)| **kind == Kind::Global);
            global.for_each(|(heads, _)| *heads = count);
        }
        let ffn = self.per_layer("feed_forward_length", kinds.len())?;
        let owners =
            kinds.len().checked_sub(shared).filter(|owners| *owners > 0).ok_or_else(|| {
                self.bad(
                    "attention.shared_kv_layers",
                    &shared,
                    "at least one layer must have keys and values",
                )
            })?;
        let layer = |(index, kind): (usize, &Kind)| {
            // Layers without a KV cache share that of the last owner of their kind.
            let donor = if index < owners {
                Some(index)
            } else {
                (0..owners).rev().find(|donor| kinds[*donor] == *kind)
            };
            let donor = donor.ok_or_else(|| {
                self.bad(
                    "attention.shared_kv_layers",
                    &shared,
                    "no layer of the same kind has keys and values to share",
                )
            })?;
            let head = if *kind == Kind::Sliding { sliding } else { global };
            let kv_heads = kv_heads[donor];
            Ok(Layer { index, kind: *kind, head, kv_heads, ffn: ffn[index], donor })
        };
        kinds.iter().enumerate().map(layer).collect()
    }

    fn experts(&self, count: usize) -> Result<Experts, ModelError> {
        let used = self.positive("expert_used_count")?;
        if count > Router::MAX_EXPERTS {
            return Err(self.bad(
                "expert_count",
                &count,
                "the router supports at most 256 experts",
            ));
        }
        if used > Router::MAX_CHOSEN {
            let why = "the router selects at most 16 experts per token";
            return Err(self.bad("expert_used_count", &used, why));
        }
        if used > count {
            return Err(self.bad("expert_used_count", &used, "it must not exceed expert_count"));
        }
        Ok(Experts { count, used, width: self.positive("expert_feed_forward_length")? })
    }
}
