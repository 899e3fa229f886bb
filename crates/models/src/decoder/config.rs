//! Configuration of a decoder, from a file's keys.

use rullama_engine::{
    graph::Element,
    ops::{Attention, HeadForm},
};
use rullama_gguf::Gguf;

use crate::{error::ModelError, family::Family, keys::Keys};

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

#[cfg(test)]
mod tests {
    use rullama_engine::ops::{Attention, Router};

    /// Error messages name these limits.
    #[test]
    fn messages_name_the_kernels_limits() {
        assert_eq!((Attention::HEAD_STEP, Attention::ENCODER_HEAD_STEP), (16, 8));
        assert_eq!((Attention::MAX_HEADS, Attention::MAX_HEAD), (256, 512));
        assert_eq!((Router::MAX_EXPERTS, Router::MAX_CHOSEN), (256, 16));
    }
}
