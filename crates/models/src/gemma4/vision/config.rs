//! Configuration of a vision tower, from a file's keys.

use rullama_engine::ops::Attention;
use rullama_gguf::{Gguf, Optional};

use crate::{
    decoder::expected::{List, size},
    error::ModelError,
    keys::Keys,
    tensors::Expected,
};

/// Channels of a pixel.
pub(crate) const CHANNELS: usize = 3;
/// The projector's weight, which all vision encoders have.
pub(super) const PROJECTOR: &str = "mm.input_projection.weight";
const POSITIONS: &str = "v.position_embd.weight";
const WIDTH: &str = "embedding_length";
const FFN: &str = "embedding_length and feed_forward_length";
const PATCH: &str = "patch_size and embedding_length";

/// Configuration of a vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    /// Blocks.
    pub layers: usize,
    /// Hidden size.
    pub width: usize,
    /// Heads of every block.
    pub heads: usize,
    /// Feed-forward width.
    pub ffn: usize,
    /// Epsilon of norms.
    pub eps: f32,
    /// Patch side in pixels.
    pub patch: usize,
    /// Pooling side: patches per soft token along each axis.
    pub pool: usize,
    /// Number of learned position embeddings along each axis.
    pub positions: usize,
    /// Width of a soft token.
    pub out: usize,
}

impl VisionConfig {
    /// Reads and checks the keys of a projector file or of a model file with towers; `None` if it has no vision tower.
    ///
    /// # Errors
    /// If keys are missing or impossible, or the tower is of an unsupported kind.
    pub fn of_file(gguf: &Gguf) -> Result<Option<Self>, ModelError> {
        let prefix = match gguf.str("general.architecture")? {
            "clip" => "clip.vision",
            _ => "gemma4.vision",
        };
        let keys = Keys { gguf, prefix };
        let Some(layers) = keys.optional("block_count")? else { return Ok(None) };
        let kind = gguf.str("clip.vision.projector_type").optional()?.unwrap_or("gemma4v");
        if kind != "gemma4v" {
            return Err(keys.bad("projector_type", &kind, "only gemma4v encoders are supported"));
        }
        let config = Self {
            layers,
            width: keys.positive("embedding_length")?,
            heads: keys.positive("attention.head_count")?,
            ffn: keys.positive("feed_forward_length")?,
            eps: keys.float("attention.layer_norm_epsilon", Some(1e-6))?,
            patch: keys.positive("patch_size")?,
            pool: keys.optional("projector.scale_factor")?.unwrap_or(3),
            positions: size(gguf, POSITIONS, 1)?,
            out: size(gguf, PROJECTOR, 1)?,
        };
        config.check(&keys)?;
        Ok(Some(config))
    }

    /// Head size.
    pub fn head(&self) -> usize {
        self.width / self.heads
    }

    /// Matmuls that may be clamped, in the order of packed limits.
    pub fn clamped_linears(&self) -> Vec<String> {
        let linears = ["attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"];
        (0..self.layers)
            .flat_map(|layer| linears.map(|name| format!("v.blk.{layer}.{name}")))
            .collect()
    }

    /// All tensors the tower may use.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        let (e, head) = (self.width, self.head());
        list.add("v.patch_embd.weight", &[e, CHANNELS, self.patch, self.patch], PATCH);
        list.add(PROJECTOR, &[self.out, e], WIDTH);
        list.may("v.std_bias", &[e], WIDTH);
        list.may("v.std_scale", &[e], WIDTH);
        for layer in 0..self.layers {
            let mut add = |name: &str, dims: &[usize], keys| {
                list.add(&format!("v.blk.{layer}.{name}.weight"), dims, keys);
            };
            for name in ["ln1", "ln2", "attn_post_norm", "ffn_post_norm"] {
                add(name, &[e], WIDTH);
            }
            for name in ["attn_q", "attn_k", "attn_v", "attn_out"] {
                add(name, &[e, e], WIDTH);
            }
            for name in ["attn_q_norm", "attn_k_norm"] {
                add(name, &[head], "embedding_length and attention.head_count");
            }
            add("ffn_gate", &[self.ffn, e], FFN);
            add("ffn_up", &[self.ffn, e], FFN);
            add("ffn_down", &[e, self.ffn], FFN);
            list.may(&format!("v.blk.{layer}.out_scale.weight"), &[1], WIDTH);
        }
        list.0
    }

    fn check(&self, keys: &Keys<'_>) -> Result<(), ModelError> {
        if !self.width.is_multiple_of(self.heads) {
            let why = "the width must be a multiple of the heads";
            return Err(keys.bad("attention.head_count", &self.heads, why));
        }
        let head = ("attention.head_count", self.head());
        keys.check_heads(self.heads, head, Attention::ENCODER_HEAD_STEP)?;
        if self.patch > 64 || self.pool == 0 || self.pool > 16 {
            let why = "not a supported patch size";
            return Err(keys.bad("patch_size", &self.patch, why));
        }
        if self.layers > 256 {
            return Err(keys.bad(
                "block_count",
                &self.layers,
                "too many layers, the file is damaged",
            ));
        }
        Ok(())
    }
}
