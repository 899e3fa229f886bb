//! Gemma 3: 270M to 27B, and FunctionGemma, MedGemma and TranslateGemma, which are the same models with other weights.
//!
//! As Gemma 4's dense decoder, but values have no norm, scores are scaled, and logits have no soft cap. Five sliding layers, then a global
//! one; positions of global layers are divided by 8 from 4B on.

use rullama_engine::ops::{Activation, RopePairs};
use rullama_gguf::{Array, Gguf, Optional, Value};

use super::{Family, llama::linear_factor};
use crate::{
    decoder::{Config, Kind, Layer, Rope},
    error::ModelError,
    keys::Keys,
};

/// Gemma 3.
pub static GEMMA3: Family = Family {
    architecture: "gemma3",
    post_norms: true,
    qk_norm: true,
    v_norm: false,
    pairs: RopePairs::Halves,
    activation: Activation::Gelu,
    scaled_embeddings: true,
    global_image_blocks: true,
    skips_tensors: false,
    read,
};

/// Every so many layers, the last one looks at everything, where the file does not say.
const PERIOD: usize = 6;
/// The number of layers of 27B, whose scores are scaled by another width: no key tells.
const LAYERS_27B: usize = 62;
/// Files of models with a context as long as this have positions of global layers divided by 8, also where they do not say so.
const LONG_CONTEXT: usize = 131_072;

fn read(family: &'static Family, gguf: &Gguf) -> Result<Config, ModelError> {
    let keys = Keys { gguf, prefix: family.architecture };
    let (width, heads) =
        (keys.positive("embedding_length")?, keys.positive("attention.head_count")?);
    let head = keys.optional("attention.key_length")?.unwrap_or(256);
    keys.same_length("attention.value_length", head, "keys and values must be of one length")?;
    let count = keys.layer_count()?;
    let context = keys.positive("context_length")?;
    let window = keys.optional("attention.sliding_window")?.filter(|window| *window > 0);
    let kinds = match window {
        Some(_) => kinds(&keys, count)?,
        None => vec![Kind::Global; count],
    };
    let kv_heads = keys.per_layer("attention.head_count_kv", count)?;
    let ffn = keys.per_layer("feed_forward_length", count)?;
    let layer = |(index, kind): (usize, Kind)| Layer {
        index,
        kind,
        head,
        kv_heads: kv_heads[index],
        ffn: ffn[index],
        donor: index,
    };
    let linear = match linear_factor(&keys)? {
        None if context >= LONG_CONTEXT => 8.0,
        factor => factor.unwrap_or(1.0),
    };
    let scaled = if count == LAYERS_27B { width / heads } else { head };
    let config = Config {
        family,
        width,
        heads,
        vocabulary: keys.vocabulary(),
        context,
        window: window.unwrap_or(context),
        eps: keys.float("attention.layer_norm_rms_epsilon", Some(1e-6))?,
        softcap: softcap(&keys)?,
        attention_scale: (scaled.max(1) as f64).sqrt().recip() as f32,
        rope: Rope {
            sliding: base(&keys, ["rope.freq_base_swa", "rope.local.freq_base"], 1e4)?,
            global: base(&keys, ["rope.freq_base", "rope.global.freq_base"], 1e6)?,
            linear,
        },
        per_layer: None,
        experts: None,
        layers: kinds.into_iter().enumerate().map(layer).collect(),
        layer_scale: "layer_output_scale",
    };
    config.check(&keys)?;
    Ok(config)
}

/// A base by either of its keys.
fn base(keys: &Keys<'_>, [name, other]: [&str; 2], default: f32) -> Result<f32, ModelError> {
    let default = keys.float(other, Some(default))?;
    keys.float(name, Some(default))
}

/// No released model has one.
fn softcap(keys: &Keys<'_>) -> Result<Option<f32>, ModelError> {
    let name = "final_logit_softcapping";
    let zero = keys.gguf.f32(&keys.key(name)).optional()?.is_none_or(|cap| cap == 0.0);
    if zero { Ok(None) } else { keys.float(name, None).map(Some) }
}

/// Which layers look at everything: a period, or one entry per layer.
fn kinds(keys: &Keys<'_>, layers: usize) -> Result<Vec<Kind>, ModelError> {
    let name = "attention.sliding_window_pattern";
    let kind = |sliding: bool| if sliding { Kind::Sliding } else { Kind::Global };
    let every = |period: usize| -> Vec<Kind> {
        (1..=layers).map(|layer| kind(period == 0 || !layer.is_multiple_of(period))).collect()
    };
    let kinds = match keys.gguf.get(&keys.key(name)) {
        None => every(PERIOD),
        Some(Value::Array(Array::Bool(sliding))) => sliding.iter().copied().map(kind).collect(),
        Some(Value::Array(_)) => {
            let sliding = keys.gguf.integers(&keys.key(name))?;
            sliding.into_iter().map(|sliding| kind(sliding != 0)).collect()
        }
        Some(value) => {
            let period = value.integer().and_then(|period| usize::try_from(period).ok());
            let why = "it must be a period, or one entry per layer";
            every(period.ok_or_else(|| keys.bad(name, &"of another type", why))?)
        }
    };
    if kinds.len() == layers {
        return Ok(kinds);
    }
    Err(keys.bad(name, &format!("{} entries", kinds.len()), "there must be one per layer"))
}
