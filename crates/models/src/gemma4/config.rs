//! What a file's keys say about a decoder.

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

/// A decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What its layers compute.
    pub family: &'static Family,
    /// Numbers in a hidden state.
    pub width: usize,
    /// Query heads of every layer.
    pub heads: usize,
    /// Tokens the model knows.
    pub vocabulary: usize,
    /// Tokens it was trained to look back.
    pub context: usize,
    /// Keys a query of a sliding layer sees, itself included.
    pub window: usize,
    /// Added to the mean inside norms.
    pub eps: f32,
    /// Logits are squeezed between plus and minus this, where there is a limit.
    pub softcap: Option<f32>,
    /// What scores are multiplied with; half of it, as a power, is in the RoPE tables of queries and keys each.
    pub attention_scale: f32,
    /// RoPE bases of sliding and global layers.
    pub rope: Rope,
    /// Per-layer inputs, where the model has them.
    pub per_layer: Option<PerLayer>,
    /// The experts, where the model has them.
    pub experts: Option<Experts>,
    /// From the first to the last.
    pub layers: Vec<Layer>,
    /// The tensor that scales a layer's result, where there is one.
    pub layer_scale: &'static str,
}

/// How positions turn heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of sliding layers.
    pub sliding: f32,
    /// Base of global layers.
    pub global: f32,
    /// What positions of global layers are divided by.
    pub linear: f32,
}

/// Inputs that each layer gets beside the hidden state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerLayer {
    /// Numbers per layer.
    pub width: usize,
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// How many there are.
    pub count: usize,
    /// How many a token uses.
    pub used: usize,
    /// Numbers inside one.
    pub width: usize,
}

/// How far a layer looks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A window.
    Sliding,
    /// Everything.
    Global,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its place.
    pub index: usize,
    /// How far it looks back.
    pub kind: Kind,
    /// Numbers in a head.
    pub head: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Numbers inside its feed-forward part.
    pub ffn: usize,
    /// The layer whose keys and values it uses; itself if it makes its own.
    pub donor: usize,
}

impl Layer {
    /// Whether it makes keys and values.
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

    /// Reads the keys of a Gemma 4 decoder; those of related models have another prefix.
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

    /// What embeddings are multiplied with.
    pub fn embedding_scale(&self) -> f32 {
        if self.family.scaled_embeddings { (self.width as f64).sqrt() as f32 } else { 1.0 }
    }

    /// The layers that make keys and values; those after them use theirs.
    pub fn owners(&self) -> usize {
        self.layers.iter().filter(|layer| layer.owns_cache()).count()
    }

    /// Numbers in a head of layers of this kind.
    pub fn head(&self, kind: Kind) -> Option<usize> {
        self.layers.iter().find(|layer| layer.kind == kind).map(|layer| layer.head)
    }

    /// Numbers in a row of the table of per-layer inputs; 0 where there is none.
    pub fn table_width(&self) -> usize {
        self.per_layer.map_or(0, |per_layer| per_layer.width * self.layers.len())
    }

    /// Refuses a format of KV caches that the kernels have no form for with these heads.
    ///
    /// # Errors
    /// If the heads are no whole groups of the format.
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

    /// What kernels and the arithmetic of shapes rely on.
    pub(crate) fn check(&self, keys: &Keys<'_>) -> Result<(), ModelError> {
        for layer in &self.layers {
            if !self.heads.is_multiple_of(layer.kv_heads) {
                return Err(keys.bad(
                    "attention.head_count_kv",
                    &layer.kv_heads,
                    "the query heads cannot be divided among these",
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
            // A period: every so many layers, the last one looks at everything.
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
                    "keys and values must be of one length",
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
                    "some layer must make keys and values",
                )
            })?;
        let layer = |(index, kind): (usize, &Kind)| {
            // Layers without keys of their own use the last ones of their kind.
            let donor = if index < owners {
                Some(index)
            } else {
                (0..owners).rev().find(|donor| kinds[*donor] == *kind)
            };
            let donor = donor.ok_or_else(|| {
                self.bad(
                    "attention.shared_kv_layers",
                    &shared,
                    "a layer has no other layer to share with",
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
            return Err(self.bad("expert_count", &count, "the router takes at most 256 experts"));
        }
        if used > Router::MOST_CHOSEN {
            let why = "the router gives a token at most 16 experts";
            return Err(self.bad("expert_used_count", &used, why));
        }
        if used > count {
            return Err(self.bad("expert_used_count", &used, "more than the model's experts"));
        }
        Ok(Experts { count, used, width: self.positive("expert_feed_forward_length")? })
    }
}

#[cfg(test)]
mod tests {
    use super::{Attention, Router};

    /// Messages name these numbers.
    #[test]
    fn messages_name_the_kernels_limits() {
        assert_eq!((Attention::HEAD_STEP, Attention::ENCODER_HEAD_STEP), (16, 8));
        assert_eq!((Attention::MOST_HEADS, Attention::MOST_HEAD), (256, 512));
        assert_eq!((Router::MOST_EXPERTS, Router::MOST_CHOSEN), (256, 16));
    }
}
