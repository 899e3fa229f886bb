//! Configuration of an audio tower, from a file's keys.
//! There are two naming schemes, and they use two tensor names for different tensors. Names that only one scheme uses tell them apart.

use rullama_engine::ops::Attention;
use rullama_gguf::{Gguf, Optional};

use crate::{
    decoder::expected::{List, size},
    error::ModelError,
    keys::Keys,
    tensors::Expected,
};

/// Convolution kernel size along both axes.
const KERNEL: usize = 3;
const WIDTH: &str = "embedding_length";
const FFN: &str = "embedding_length and feed_forward_length";
const SHAPE: &str = "the encoder's other tensors";

/// Tensor names that differ between projector files and model files with towers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The matmul after the convolutions.
    pub subsample: &'static str,
    /// The norm before attention.
    pub attention_before: &'static str,
    /// The norm after attention.
    pub attention_after: &'static str,
    /// The matmul that projects relative position embeddings.
    pub distances: &'static str,
    /// The norm at the end of a block.
    pub block_end: &'static str,
    /// The matmul after the last block.
    pub out: &'static str,
}

const PROJECTOR_FILE: Names = Names {
    subsample: "a.input_projection",
    attention_before: "attn_pre_norm",
    attention_after: "attn_post_norm",
    distances: "attn_k_rel",
    block_end: "ln2",
    out: "a.pre_encode.out",
};
const INSIDE: Names = Names {
    subsample: "a.pre_encode.out",
    attention_before: "ln1",
    attention_after: "ln2",
    distances: "linear_pos",
    block_end: "layer_pre_norm",
    out: "mm.a.fc",
};

/// Configuration of an audio tower.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioConfig {
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
    /// Mel bins.
    pub bins: usize,
    /// Channels after each convolution.
    pub channels: [usize; 2],
    /// Kernel size of the light convolution.
    pub taps: usize,
    /// Output width of the tower, before the projector.
    pub tower_out: usize,
    /// Width of a soft token.
    pub out: usize,
    /// Tensor names of this file.
    pub names: Names,
}

impl AudioConfig {
    /// Reads and checks the keys of a projector file or of a model file with towers; `None` if it has no audio tower.
    ///
    /// # Errors
    /// If keys are missing or impossible, or the tower is of an unsupported kind.
    pub fn of_file(gguf: &Gguf) -> Result<Option<Self>, ModelError> {
        let prefix = match gguf.str("general.architecture")? {
            "clip" => "clip.audio",
            _ => "gemma4.audio",
        };
        let keys = Keys { gguf, prefix };
        let Some(layers) = keys.optional("block_count")? else { return Ok(None) };
        let kind = gguf.str("clip.audio.projector_type").optional()?.unwrap_or("gemma4a");
        if kind != "gemma4a" {
            return Err(keys.bad("projector_type", &kind, "only gemma4a encoders are supported"));
        }
        if layers > 256 {
            return Err(keys.bad("block_count", &layers, "too many layers, the file is damaged"));
        }
        let names = match gguf.tensor("mm.a.fc.weight") {
            Some(_) => INSIDE,
            None => PROJECTOR_FILE,
        };
        let size = |name: &str, dim: usize| size(gguf, name, dim);
        let config = Self {
            layers,
            width: keys.positive("embedding_length")?,
            heads: keys.positive("attention.head_count")?,
            ffn: keys.positive("feed_forward_length")?,
            // The reference ignores the key and uses this epsilon in all norms.
            eps: 1e-6,
            bins: keys.optional("num_mel_bins")?.unwrap_or(128),
            channels: [size("a.conv1d.0.norm.weight", 0)?, size("a.conv1d.1.norm.weight", 0)?],
            taps: size("a.blk.0.conv_dw.weight", 0)?,
            tower_out: size("mm.a.input_projection.weight", 0)?,
            out: size("mm.a.input_projection.weight", 1)?,
            names,
        };
        if !config.width.is_multiple_of(2 * config.heads) {
            let why = "the width must be a multiple of twice the heads";
            return Err(keys.bad("attention.head_count", &config.heads, why));
        }
        if config.heads > Attention::MAX_HEADS {
            let why = "attention kernels support at most 256 heads";
            return Err(keys.bad("attention.head_count", &config.heads, why));
        }
        keys.product("embedding_length", config.width, 2)?;
        if config.bins != 128 {
            return Err(keys.bad("num_mel_bins", &config.bins, "only 128 mel bins are supported"));
        }
        Ok(Some(config))
    }

    /// Head size.
    pub fn head(&self) -> usize {
        self.width / self.heads
    }

    /// Mel bins after both convolutions.
    pub fn bands(&self) -> usize {
        self.bins.div_ceil(2).div_ceil(2)
    }

    /// Matmuls that may be clamped.
    pub fn clamped_linears(&self) -> Vec<String> {
        let linears = [
            "ffn_up",
            "ffn_down",
            "attn_q",
            "attn_k",
            "attn_v",
            "attn_out",
            "conv_pw1",
            "conv_pw2",
            "ffn_up_1",
            "ffn_down_1",
        ];
        (0..self.layers)
            .flat_map(|layer| linears.map(|name| format!("a.blk.{layer}.{name}")))
            .collect()
    }

    /// All tensors the tower may use.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        let ([first, second], a, names) = (self.channels, self.width, self.names);
        list.flat("a.conv1d.0.weight", &[first, 1, KERNEL, KERNEL], SHAPE);
        list.flat("a.conv1d.1.weight", &[second, first, KERNEL, KERNEL], SHAPE);
        list.add("a.conv1d.0.norm.weight", &[first], SHAPE);
        list.add("a.conv1d.1.norm.weight", &[second], SHAPE);
        list.add(&format!("{}.weight", names.subsample), &[a, self.bands() * second], WIDTH);
        list.add(&format!("{}.weight", names.out), &[self.tower_out, a], WIDTH);
        list.add(&format!("{}.bias", names.out), &[self.tower_out], SHAPE);
        list.add("mm.a.input_projection.weight", &[self.out, self.tower_out], SHAPE);
        list.may("mm.a.soft_emb_norm.weight", &[self.tower_out], SHAPE);
        for layer in 0..self.layers {
            self.layer(&mut list, layer);
        }
        list.0
    }

    fn layer(&self, list: &mut List, layer: usize) {
        let (a, names) = (self.width, self.names);
        let at = |name: &str| format!("a.blk.{layer}.{name}.weight");
        let norms = [
            "ffn_norm",
            "ffn_post_norm",
            "ffn_norm_1",
            "ffn_post_norm_1",
            "conv_norm",
            "norm_conv",
            names.attention_before,
            names.attention_after,
            names.block_end,
        ];
        for name in norms {
            list.add(&at(name), &[a], WIDTH);
        }
        for name in ["attn_q", "attn_k", "attn_v", "attn_out", "conv_pw2", names.distances] {
            list.add(&at(name), &[a, a], WIDTH);
        }
        for half in ["", "_1"] {
            list.add(&at(&format!("ffn_up{half}")), &[self.ffn, a], FFN);
            list.add(&at(&format!("ffn_down{half}")), &[a, self.ffn], FFN);
        }
        list.add(&at("conv_pw1"), &[2 * a, a], WIDTH);
        list.flat(&at("conv_dw"), &[a, self.taps], WIDTH);
        list.add(&at("per_dim_scale"), &[self.head()], WIDTH);
        list.may(&at("per_dim_k_scale"), &[self.head()], WIDTH);
    }
}
