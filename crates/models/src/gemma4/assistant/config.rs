//! Configuration of a drafter, from a file's keys.

use rullama_engine::ops::Attention;
use rullama_gguf::{Gguf, Optional};

use crate::{
    decoder::{Config, Kind, Layer, Rope, expected::List},
    error::ModelError,
    keys::Keys,
    tensors::Expected,
};

/// Architecture name of drafters.
pub(super) const ARCHITECTURE: &str = "gemma4-assistant";
/// Default number of clusters that are scored.
const CLUSTERS_USED: usize = 32;
const CENTROIDS: &str = "masked_embd_centroids.weight";
const ORDERING: &str = "masked_embd_ordering";
const WIDTH: &str = "embedding_length";
const FFN: &str = "embedding_length and feed_forward_length";
const OUT: &str = "embedding_length and embedding_length_out";
const QUERIES: &str = "embedding_length, attention.head_count and attention.key_length(_swa)";

/// Configuration of a drafter.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftConfig {
    /// The drafter's hidden size.
    pub width: usize,
    /// The target model's hidden size.
    pub out: usize,
    /// Query heads of every layer.
    pub heads: usize,
    /// Feed-forward width.
    pub ffn: usize,
    /// Vocabulary size.
    pub vocabulary: usize,
    /// The target model's sliding window.
    pub window: usize,
    /// Epsilon of norms.
    pub eps: f32,
    /// RoPE bases of sliding and global layers.
    pub rope: Rope,
    /// Layers, first to last.
    pub layers: Vec<DraftLayer>,
    /// Token clusters of the LM head, if the file has them.
    pub clusters: Option<Clusters>,
}

/// A layer of a drafter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftLayer {
    /// Attention span.
    pub kind: Kind,
    /// Head size.
    pub head: usize,
    /// KV heads of the target model's caches.
    pub kv_heads: usize,
}

/// Token clusters with a centroid each: only tokens of the nearest clusters are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clusters {
    /// Number of clusters.
    pub count: usize,
    /// Tokens per cluster.
    pub each: usize,
    /// Number of clusters that are scored.
    pub used: usize,
}

impl DraftConfig {
    /// Whether a file holds a drafter.
    pub fn is_drafter(gguf: &Gguf) -> bool {
        gguf.str("general.architecture").is_ok_and(|name| name == ARCHITECTURE)
    }

    /// Reads and checks the keys of a file.
    ///
    /// # Errors
    /// If the file holds another kind of model, or keys are missing or impossible.
    pub fn of_file(gguf: &Gguf) -> Result<Self, ModelError> {
        let found = gguf.str("general.architecture")?;
        if found != ARCHITECTURE {
            let (file, found) = (gguf.name().into(), found.into());
            return Err(ModelError::NoDrafter { file, found });
        }
        let keys = Keys { gguf, prefix: ARCHITECTURE };
        let count = keys.layer_count()?;
        let kinds = keys.kinds(count)?;
        let kv_heads = keys.per_layer("attention.head_count_kv", count)?;
        let head = |swa: &str| keys.positive(&format!("attention.key_length{swa}"));
        let (sliding, global) = (head("_swa")?, head("")?);
        let layer = |(kind, kv_heads): (&Kind, &usize)| DraftLayer {
            kind: *kind,
            head: if *kind == Kind::Sliding { sliding } else { global },
            kv_heads: *kv_heads,
        };
        let vocabulary = gguf.tensor("token_embd.weight").map_or(0, |tensor| tensor.rows());
        let vocabulary = usize::try_from(vocabulary).unwrap_or(0);
        let config = Self {
            width: keys.positive("embedding_length")?,
            out: keys.positive("embedding_length_out")?,
            heads: keys.positive("attention.head_count")?,
            ffn: keys.positive("feed_forward_length")?,
            vocabulary,
            window: keys.positive("attention.sliding_window")?,
            eps: keys.float("attention.layer_norm_rms_epsilon", None)?,
            rope: Rope {
                sliding: keys.float("rope.freq_base_swa", Some(1e4))?,
                global: keys.float("rope.freq_base", None)?,
                linear: 1.0,
            },
            layers: kinds.iter().zip(&kv_heads).map(layer).collect(),
            clusters: clusters(&keys, vocabulary)?,
        };
        for layer in &config.layers {
            let head = ("attention.key_length", layer.head);
            keys.check_heads(config.heads, head, Attention::HEAD_STEP)?;
        }
        keys.product("embedding_length_out", config.out, 2)?;
        Ok(config)
    }

    /// Checks that the drafter belongs to this model.
    ///
    /// # Errors
    /// If sizes differ.
    pub fn check(&self, model: &Config) -> Result<(), ModelError> {
        let same = |what, drafter: usize, model: usize| {
            let fits = drafter == model;
            fits.then_some(()).ok_or(ModelError::OtherDrafter { what, drafter, model })
        };
        same("hidden size is", self.out, model.width)?;
        same("vocabulary size is", self.vocabulary, model.vocabulary)?;
        same("window is", self.window, model.window)?;
        for layer in &self.layers {
            let donor = donor(model, layer.kind);
            let (head, kv_heads) = donor.map_or((0, 0), |donor| (donor.head, donor.kv_heads));
            same("head size is", layer.head, head)?;
            same("number of KV heads is", layer.kv_heads, kv_heads)?;
            if !self.heads.is_multiple_of(layer.kv_heads) {
                same("number of query heads is", self.heads, layer.kv_heads)?;
            }
        }
        Ok(())
    }

    /// All tensors the drafter may use.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        let d = self.width;
        list.add("token_embd.weight", &[self.vocabulary, d], WIDTH);
        list.add("output_norm.weight", &[d], WIDTH);
        list.add("nextn.pre_projection.weight", &[d, 2 * self.out], OUT);
        list.add("nextn.post_projection.weight", &[self.out, d], OUT);
        if let Some(clusters) = self.clusters {
            list.add(CENTROIDS, &[clusters.count, d], WIDTH);
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let at = |name: &str| format!("blk.{index}.{name}.weight");
            let queries = self.heads * layer.head;
            for name in ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"] {
                list.add(&at(name), &[d], WIDTH);
            }
            list.add(&at("attn_q"), &[queries, d], QUERIES);
            list.add(&at("attn_q_norm"), &[layer.head], QUERIES);
            list.add(&at("attn_output"), &[d, queries], QUERIES);
            list.add(&at("ffn_gate"), &[self.ffn, d], FFN);
            list.add(&at("ffn_up"), &[self.ffn, d], FFN);
            list.add(&at("ffn_down"), &[d, self.ffn], FFN);
            list.may(&at("layer_output_scale"), &[1], WIDTH);
        }
        list.0
    }

    /// Head size of layers of this kind.
    pub fn head(&self, kind: Kind) -> Option<usize> {
        self.layers.iter().find(|layer| layer.kind == kind).map(|layer| layer.head)
    }

    /// The tensor that lists the tokens of all clusters, if the file has it.
    pub fn ordering(gguf: &Gguf) -> Option<&rullama_gguf::TensorInfo> {
        gguf.tensor(ORDERING).or_else(|| gguf.tensor(&format!("{ORDERING}.weight")))
    }
}

/// The target model's layer whose KV cache the drafter's layers of this kind read.
pub(super) fn donor(model: &Config, kind: Kind) -> Option<&Layer> {
    model.layers.iter().rev().find(|layer| layer.kind == kind && layer.owns_cache())
}

/// The clusters, if the file has both of their tensors.
fn clusters(keys: &Keys<'_>, vocabulary: usize) -> Result<Option<Clusters>, ModelError> {
    let (Some(centroids), Some(ordering)) =
        (keys.gguf.tensor(CENTROIDS), DraftConfig::ordering(keys.gguf))
    else {
        return Ok(None);
    };
    let count = usize::try_from(centroids.rows()).unwrap_or(0);
    if count == 0 || !vocabulary.is_multiple_of(count) || ordering.elements() != vocabulary as u64 {
        return Err(ModelError::WrongShape {
            name: CENTROIDS.into(),
            found: format!("{count} centroids for an ordering of {} tokens", ordering.elements()),
            wanted: format!("an equal share of {vocabulary} tokens for each"),
            keys: "token_embd.weight",
        });
    }
    let used = keys.gguf.u32("gemma4-assistant.centroid_intermediate_top_k").optional()?;
    let used = used.map_or(CLUSTERS_USED, |used| used as usize).clamp(1, count.min(128));
    Ok(Some(Clusters { count, each: vocabulary / count, used }))
}
