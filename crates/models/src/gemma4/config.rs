//! Configuration of a decoder, from a file's keys.

use rullama_engine::{
    graph::Element,
    ops::{Attention, HeadForm, Router},
};
use rullama_gguf::{Array, Gguf, Value};

use crate::{
    error::ModelError,
    family::{Family, GEMMA4},
    keys::Keys,
};

/// Configuration of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Model family, which selects norms, activation and RoPE form.
    pub family: &'static Family,
    /// Hidden size.
    pub width: usize,
    /// Query heads of every layer.
    pub heads: usize,
    /// Vocabulary size.
    pub vocabulary: usize,
    /// Trained context length in tokens.
    pub context: usize,
    /// Sliding window in tokens, including the query's own.
    pub window: usize,
    /// Epsilon of norms.
    pub eps: f32,
    /// Softcap of the logits, if there is one.
    pub softcap: Option<f32>,
    /// Factor of attention scores; its square root is folded into the RoPE tables of queries and of keys.
    pub attention_scale: f32,
    /// RoPE bases of sliding and global layers.
    pub rope: Rope,
    /// Per-layer inputs, if the model has them.
    pub per_layer: Option<PerLayer>,
    /// Experts, if the model has them.
    pub experts: Option<Experts>,
    /// Layers, first to last.
    pub layers: Vec<Layer>,
    /// Name of the tensor that scales a layer's output; files may lack it.
    pub layer_scale: &'static str,
}

/// RoPE parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of sliding layers.
    pub sliding: f32,
    /// Base of global layers.
    pub global: f32,
    /// Linear scaling: positions of global layers are divided by this.
    pub linear: f32,
}

/// Per-layer input embeddings (PLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerLayer {
    /// Width per layer.
    pub width: usize,
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// Number of experts.
    pub count: usize,
    /// Experts per token.
    pub used: usize,
    /// Feed-forward width of one expert.
    pub width: usize,
}

/// Attention span of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sliding window.
    Sliding,
    /// Full context.
    Global,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Layer index.
    pub index: usize,
    /// Attention span.
    pub kind: Kind,
    /// Head size.
    pub head: usize,
    /// KV heads.
    pub kv_heads: usize,
    /// Feed-forward width.
    pub ffn: usize,
    /// The layer whose KV cache it reads: itself, unless the cache is shared.
    pub donor: usize,
}

impl Layer {
    /// Whether the layer computes its own keys and values.
    pub fn owns_cache(&self) -> bool {
        self.donor == self.index
    }
}

impl Config {
    /// Reads and checks the keys of a file.
    ///
    /// # Errors
    /// If the file holds another kind of model, or keys are missing or impossible.
    pub fn of_file(gguf: &Gguf) -> Result<Self, ModelError> {
        let family = Family::of_file(gguf)?;
        (family.read)(family, gguf)
    }

    /// Reads the keys of a Gemma 4 decoder; related models use another prefix.
    pub(crate) fn of_keys(keys: &Keys<'_>) -> Result<Self, ModelError> {
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
        let config = Self {
            family: &GEMMA4,
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

    /// How heads are prepared for attention.
    pub(crate) fn head_form(&self) -> HeadForm {
        let Family { qk_norm, v_norm, pairs, .. } = *self.family;
        HeadForm { eps: self.eps, qk_norm, v_norm, pairs }
    }

    /// Factor of token embeddings.
    pub fn embedding_scale(&self) -> f32 {
        if self.family.scaled_embeddings { (self.width as f64).sqrt() as f32 } else { 1.0 }
    }

    /// Number of layers with their own KV cache; the layers after them share it.
    pub fn owners(&self) -> usize {
        self.layers.iter().filter(|layer| layer.owns_cache()).count()
    }

    /// Head size of layers of this kind.
    pub fn head(&self, kind: Kind) -> Option<usize> {
        self.layers.iter().find(|layer| layer.kind == kind).map(|layer| layer.head)
    }

    /// Row width of the per-layer input table; 0 without one.
    pub fn table_width(&self) -> usize {
        self.per_layer.map_or(0, |per_layer| per_layer.width * self.layers.len())
    }

    /// Checks that kernels support this KV cache format with the model's head sizes.
    ///
    /// # Errors
    /// If a head size is not a multiple of the format's block size.
    pub fn check_cache(&self, cache: Element) -> Result<(), ModelError> {
        let step = Attention::Q8_HEAD_STEP;
        let partial = |layer: &&Layer| !layer.head.is_multiple_of(step);
        match self.layers.iter().find(partial) {
            Some(layer) if cache == Element::Q8 => {
                Err(ModelError::CacheFormat { head: layer.head, step })
            }
            _ => Ok(()),
        }
    }

    /// Checks sizes that kernels and shape arithmetic rely on.
    pub(crate) fn check(&self, keys: &Keys<'_>) -> Result<(), ModelError> {
        for layer in &self.layers {
            if !self.heads.is_multiple_of(layer.kv_heads) {
                return Err(keys.bad(
                    "attention.head_count_kv",
                    &layer.kv_heads,
                    "attention.head_count must be a multiple of it",
                ));
            }
            let head = ("attention.key_length", layer.head);
            keys.check_heads(self.heads, head, Attention::HEAD_STEP)?;
        }
        if let Some(per_layer) = self.per_layer {
            let name = "embedding_length_per_layer_input";
            keys.product(name, per_layer.width, self.layers.len())?;
        }
        if let Some(experts) = self.experts {
            keys.product("expert_feed_forward_length", experts.width, 2)?;
        }
        Ok(())
    }
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
        if count > Router::MOST_EXPERTS {
            return Err(self.bad(
                "expert_count",
                &count,
                "the router supports at most 256 experts",
            ));
        }
        if used > Router::MOST_CHOSEN {
            let why = "the router selects at most 16 experts per token";
            return Err(self.bad("expert_used_count", &used, why));
        }
        if used > count {
            return Err(self.bad("expert_used_count", &used, "it must not exceed expert_count"));
        }
        Ok(Experts { count, used, width: self.positive("expert_feed_forward_length")? })
    }
}

#[cfg(test)]
mod tests {
    use super::{Attention, Router};

    /// Error messages name these limits.
    #[test]
    fn messages_name_the_kernels_limits() {
        assert_eq!((Attention::HEAD_STEP, Attention::ENCODER_HEAD_STEP), (16, 8));
        assert_eq!((Attention::MOST_HEADS, Attention::MOST_HEAD), (256, 512));
        assert_eq!((Router::MOST_EXPERTS, Router::MOST_CHOSEN), (256, 16));
    }
}
