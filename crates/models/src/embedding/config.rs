//! Configuration of a text embedding model, from a file's keys.
//! No public converter writes the second generation yet: its files use the keys and tensor names of the first generation and of Gemma 4,
//! and `embedding_projection.weight` for the projection after the last norm.

use rullama_engine::ops::{Attention, HeadNormRope};
use rullama_gguf::Gguf;

use crate::{
    decoder::{Kind, Rope, expected::List},
    error::ModelError,
    keys::Keys,
    tensors::Expected,
};

/// Architecture names of both generations.
const FIRST: &str = "gemma-embedding";
const SECOND: &str = "gemma-embedding2";
/// Architecture of Ollama's early files, whose dense heads have other tensor names.
const LEGACY: &str = "gemma3";
const LEGACY_HEAD: &str = "dense.0.weight";
/// Default period of global layers: every sixth layer.
const PERIOD: usize = 6;
const WIDTH: &str = "embedding_length";
const FFN: &str = "embedding_length and feed_forward_length";
const QUERIES: &str = "embedding_length, attention.head_count and attention.key_length";
const KEYS: &str = "embedding_length, attention.head_count_kv and attention.key_length";
const PER_LAYER: &str = "block_count and embedding_length_per_layer_input";
const DENSE: &str = "embedding_length and the other dense tensor";

/// A text embedding model.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingConfig {
    /// Hidden size.
    pub width: usize,
    /// Query heads of every layer.
    pub heads: usize,
    /// Vocabulary size.
    pub vocabulary: usize,
    /// Maximum tokens of a text.
    pub context: usize,
    /// Tokens that sliding layers attend to on each side.
    pub reach: usize,
    /// Epsilon of norms.
    pub eps: f32,
    /// RoPE bases of sliding and global layers.
    pub rope: Rope,
    /// Layers, first to last.
    pub layers: Vec<EmbeddingLayer>,
    /// How token vectors are pooled.
    pub pooling: Pooling,
    /// Width of the per-layer inputs; the first generation has none.
    pub per_layer: Option<usize>,
    /// Embedding size.
    pub out: usize,
    /// Whether the model is of the second generation, which has Gemma 4 layers.
    pub second: bool,
    /// Inner width of the dense heads after pooling, if the file has them. Without the heads, embeddings differ from the official ones.
    pub dense: Option<usize>,
    /// Tensor names of this file.
    names: Names,
}

/// Tensor names that differ between files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Names {
    dense: [&'static str; 2],
    norm: &'static str,
}

/// A layer of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingLayer {
    /// Attention span.
    pub kind: Kind,
    /// Head size.
    pub head: usize,
    /// KV heads.
    pub kv_heads: usize,
    /// Feed-forward width.
    pub ffn: usize,
}

/// How the token vectors of a text are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all tokens.
    Mean,
    /// The first token's vector.
    First,
    /// The last token's vector.
    Last,
}

impl EmbeddingConfig {
    /// Whether a file holds a text embedding model.
    pub fn is_embedding(gguf: &Gguf) -> bool {
        match gguf.str("general.architecture") {
            Ok(FIRST | SECOND) => true,
            Ok(LEGACY) => gguf.tensor(LEGACY_HEAD).is_some(),
            _ => false,
        }
    }

    /// Reads and checks the keys of a file.
    ///
    /// # Errors
    /// If the file holds another kind of model, or keys are missing or impossible.
    pub fn of_file(gguf: &Gguf) -> Result<Self, ModelError> {
        let found = gguf.str("general.architecture")?;
        if !Self::is_embedding(gguf) {
            let (file, found) = (gguf.name().into(), found.into());
            return Err(ModelError::NoEmbedding { file, found });
        }
        let keys = Keys { gguf, prefix: found };
        let second = found == SECOND;
        let names = names(gguf);
        let rows = |name: &str| gguf.tensor(name).and_then(|t| usize::try_from(t.rows()).ok());
        let width = keys.positive("embedding_length")?;
        let dense = rows(names.dense[0]).filter(|_| rows(names.dense[1]).is_some());
        let local = keys.float("rope.local.freq_base", Some(1e4))?;
        let window = keys.positive("attention.sliding_window")?;
        let config = Self {
            width,
            heads: keys.positive("attention.head_count")?,
            vocabulary: rows("token_embd.weight").unwrap_or(0),
            context: keys.positive("context_length")?,
            // The first generation's key counts both sides.
            reach: if second { window } else { window / 2 },
            eps: keys.float("attention.layer_norm_rms_epsilon", None)?,
            rope: Rope {
                sliding: keys.float("rope.freq_base_swa", Some(local))?,
                global: keys.float("rope.freq_base", Some(1e6))?,
                linear: 1.0,
            },
            layers: layers(&keys, second)?,
            pooling: pooling(&keys)?,
            per_layer: keys
                .optional("embedding_length_per_layer_input")?
                .filter(|each| second && *each > 0),
            out: match second {
                true => keys.positive("embedding_length_out")?,
                false => dense.and_then(|_| rows(names.dense[1])).unwrap_or(width),
            },
            second,
            dense,
            names,
        };
        for layer in &config.layers {
            let head = ("attention.key_length", layer.head);
            keys.check_heads(config.heads, head, Attention::ENCODER_HEAD_STEP)?;
            if !config.heads.is_multiple_of(layer.kv_heads) {
                let why = "attention.head_count must be a multiple of it";
                return Err(keys.bad("attention.head_count_kv", &layer.kv_heads, why));
            }
        }
        if let Some(each) = config.per_layer {
            let name = "embedding_length_per_layer_input";
            keys.product(name, each, config.layers.len())?;
            if !each.is_multiple_of(HeadNormRope::WIDTH_STEP) {
                return Err(keys.bad(name, &each, "it must be a multiple of 4"));
            }
        }
        Ok(config)
    }

    /// Head size of layers of this kind.
    pub fn head(&self, kind: Kind) -> Option<usize> {
        self.layers.iter().find(|layer| layer.kind == kind).map(|layer| layer.head)
    }

    /// Name of the final norm.
    pub(super) fn last_norm(&self) -> &'static str {
        self.names.norm
    }

    /// Names of the dense heads.
    pub(super) fn dense_names(&self) -> [&'static str; 2] {
        self.names.dense
    }

    /// All tensors the model may use.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        let d = self.width;
        list.add("token_embd.weight", &[self.vocabulary, d], WIDTH);
        list.add(self.names.norm, &[d], WIDTH);
        if let Some(inner) = self.dense {
            list.add(self.names.dense[0], &[inner, d], DENSE);
            list.add(self.names.dense[1], &[self.out, inner], DENSE);
        }
        if self.second {
            list.add("embedding_projection.weight", &[self.out, d], "embedding_length_out");
        }
        if let Some(each) = self.per_layer {
            list.add("per_layer_model_proj.weight", &[self.layers.len() * each, d], PER_LAYER);
            list.add("per_layer_proj_norm.weight", &[each], PER_LAYER);
        }
        self.layers.iter().enumerate().for_each(|layer| self.layer(&mut list, layer));
        list.0
    }

    fn layer(&self, list: &mut List, (index, layer): (usize, &EmbeddingLayer)) {
        let (d, head) = (self.width, layer.head);
        let (queries, kv) = (self.heads * head, layer.kv_heads * head);
        let at = |name: &str| format!("blk.{index}.{name}.weight");
        for name in ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"] {
            list.add(&at(name), &[d], WIDTH);
        }
        for name in ["attn_q_norm", "attn_k_norm"] {
            list.add(&at(name), &[head], KEYS);
        }
        list.add(&at("attn_q"), &[queries, d], QUERIES);
        list.add(&at("attn_k"), &[kv, d], KEYS);
        list.add(&at("attn_v"), &[kv, d], KEYS);
        list.add(&at("attn_output"), &[d, queries], QUERIES);
        list.add(&at("ffn_gate"), &[layer.ffn, d], FFN);
        list.add(&at("ffn_up"), &[layer.ffn, d], FFN);
        list.add(&at("ffn_down"), &[d, layer.ffn], FFN);
        if let Some(each) = self.per_layer {
            list.add(&at("inp_gate"), &[each, d], PER_LAYER);
            list.add(&at("proj"), &[d, each], PER_LAYER);
            list.add(&at("post_norm"), &[d], WIDTH);
        }
        if self.second {
            list.may(&at("layer_output_scale"), &[1], WIDTH);
        }
    }
}

fn names(gguf: &Gguf) -> Names {
    let has = |name: &str| gguf.tensor(name).is_some();
    Names {
        dense: match has(LEGACY_HEAD) {
            true => [LEGACY_HEAD, "dense.1.weight"],
            false => ["dense_2.weight", "dense_3.weight"],
        },
        norm: match has("output_norm.weight") {
            false if has("norm.weight") => "norm.weight",
            _ => "output_norm.weight",
        },
    }
}

fn pooling(keys: &Keys<'_>) -> Result<Pooling, ModelError> {
    match keys.optional("pooling_type")? {
        None | Some(1) => Ok(Pooling::Mean),
        Some(2) => Ok(Pooling::First),
        Some(3) => Ok(Pooling::Last),
        Some(other) => Err(keys.bad(
            "pooling_type",
            &other,
            "only poolings with one vector per text are supported",
        )),
    }
}

fn layers(keys: &Keys<'_>, second: bool) -> Result<Vec<EmbeddingLayer>, ModelError> {
    let count = keys.layer_count()?;
    let name = format!("{}.attention.sliding_window_pattern", keys.prefix);
    let kinds = match keys.gguf.get(&name) {
        Some(_) => keys.kinds(count)?,
        None if count > 1024 => {
            return Err(keys.bad("block_count", &count, "too many layers, the file is damaged"));
        }
        None => (1..=count)
            .map(|layer| if layer.is_multiple_of(PERIOD) { Kind::Global } else { Kind::Sliding })
            .collect(),
    };
    let global = keys.positive("attention.key_length")?;
    let sliding = match second {
        true => keys.positive("attention.key_length_swa")?,
        false => global,
    };
    let kv_heads = keys.per_layer("attention.head_count_kv", count)?;
    let ffn = keys.per_layer("feed_forward_length", count)?;
    let layer = |(index, kind): (usize, &Kind)| EmbeddingLayer {
        kind: *kind,
        head: if *kind == Kind::Sliding { sliding } else { global },
        kv_heads: kv_heads[index],
        ffn: ffn[index],
    };
    Ok(kinds.iter().enumerate().map(layer).collect())
}
