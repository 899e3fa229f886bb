//! The Llama family: SmolLM2, Llama 3.x and what is built like them (`llama`), Qwen 2 and 2.5 (`qwen2`), Qwen 3 (`qwen3`).
//!
//! Norms before each branch only, SwiGLU, every layer looks at everything. Qwen 2 adds biases to queries, keys and values, Qwen 3 norms the
//! heads of queries and keys. Files of `llama` have the rows of queries and keys reordered so that adjacent elements rotate together.

use rullama_engine::ops::{Activation, RopePairs};
use rullama_gguf::{Gguf, Optional};

use super::Family;
use crate::{
    decoder::{Config, Kind, Layer, Rope},
    error::ModelError,
    keys::Keys,
};

/// SmolLM2, Llama 2 and 3.x, Mistral.
pub static LLAMA: Family = ALIKE;

/// What all of them have in common with the first.
const ALIKE: Family = Family {
    architecture: "llama",
    post_norms: false,
    qk_norm: false,
    v_norm: false,
    pairs: RopePairs::Adjacent,
    activation: Activation::Silu,
    scaled_embeddings: false,
    global_image_blocks: false,
    skips_tensors: false,
    read: dense,
};

/// Qwen 2 and 2.5.
pub static QWEN2: Family = Family { architecture: "qwen2", pairs: RopePairs::Halves, ..ALIKE };

/// Qwen 3, dense.
pub static QWEN3: Family =
    Family { architecture: "qwen3", qk_norm: true, pairs: RopePairs::Halves, ..ALIKE };

/// Reads the keys of a dense decoder whose layers are all alike and look at everything.
///
/// # Errors
/// If keys are missing or impossible, or the file asks for something that is not supported.
pub fn dense(family: &'static Family, gguf: &Gguf) -> Result<Config, ModelError> {
    let keys = Keys { gguf, prefix: family.architecture };
    keys.refuse_experts()?;
    let (width, heads) =
        (keys.positive("embedding_length")?, keys.positive("attention.head_count")?);
    let head = match keys.optional("attention.key_length")? {
        Some(head) => head,
        None if width.is_multiple_of(heads) => width / heads,
        None => {
            let why = "the embedding length is no multiple of it, and there is no key length";
            return Err(keys.bad("attention.head_count", &heads, why));
        }
    };
    keys.same_length("attention.value_length", head, "keys and values must be of one length")?;
    keys.same_length("rope.dimension_count", head, "partial rotation is not supported")?;
    let count = keys.layer_count()?;
    let kv_heads = match keys.optional("attention.head_count_kv")? {
        Some(0) => return Err(keys.bad("attention.head_count_kv", &0, "it must be at least 1")),
        kv_heads => kv_heads.unwrap_or(heads),
    };
    let ffn = keys.per_layer("feed_forward_length", count)?;
    let layers = ffn.into_iter().enumerate().map(|(index, ffn)| Layer {
        index,
        kind: Kind::Global,
        head,
        kv_heads,
        ffn,
        donor: index,
    });
    let context = keys.positive("context_length")?;
    let base = keys.float("rope.freq_base", Some(1e4))?;
    let config = Config {
        family,
        width,
        heads,
        vocabulary: keys.vocabulary(),
        context,
        window: context,
        eps: keys.float("attention.layer_norm_rms_epsilon", None)?,
        softcap: None,
        attention_scale: (head as f64).sqrt().recip() as f32,
        rope: Rope { sliding: base, global: base, linear: linear_factor(&keys)?.unwrap_or(1.0) },
        per_layer: None,
        experts: None,
        layers: layers.collect(),
        layer_scale: "layer_output_scale",
    };
    config.check(&keys)?;
    Ok(config)
}

/// What positions are divided by, where the file says so.
///
/// # Errors
/// If they are scaled in another way.
pub(super) fn linear_factor(keys: &Keys<'_>) -> Result<Option<f32>, ModelError> {
    let name = "rope.scaling.type";
    match keys.gguf.str(&keys.key(name)).optional()? {
        None | Some("none") => Ok(None),
        Some("linear") => keys.float("rope.scaling.factor", None).map(Some),
        Some(other) => Err(keys.bad(name, &other, "only linear RoPE scaling is supported")),
    }
}
