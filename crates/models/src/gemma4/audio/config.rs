//! What a file says about its audio tower.
//!
//! Two layouts are about, and two of their names mean different things in them: which one a file has shows in names that only one
//! of them uses.

use rullama_engine::ops::Attention;
use rullama_gguf::{Gguf, Optional};

use super::super::expected::{List, size};
use crate::{error::ModelError, keys::Keys, tensors::Expected};

/// Places of the first axis' kernel, and of the second's.
const KERNEL: usize = 3;
const WIDTH: &str = "embedding_length";
const FFN: &str = "embedding_length and feed_forward_length";
const SHAPE: &str = "the encoder's other tensors";

/// Names that differ between projector files and files with towers inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The product after the convolutions.
    pub subsample: &'static str,
    /// The norm before attention.
    pub attention_before: &'static str,
    /// The norm after attention.
    pub attention_after: &'static str,
    /// The product that makes rows for distances.
    pub distances: &'static str,
    /// The norm at the end of a block.
    pub block_end: &'static str,
    /// The product after the last block.
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

/// An audio tower.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioConfig {
    /// Blocks.
    pub layers: usize,
    /// Numbers in a hidden state.
    pub width: usize,
    /// Heads of every block.
    pub heads: usize,
    /// Numbers inside the feed-forward parts.
    pub ffn: usize,
    /// Added inside norms.
    pub eps: f32,
    /// Bands of the features.
    pub bins: usize,
    /// Channels after each convolution.
    pub channels: [usize; 2],
    /// Rows that the light convolution looks at.
    pub taps: usize,
    /// Numbers after the tower, before the projector.
    pub made: usize,
    /// Numbers of a soft token.
    pub out: usize,
    /// What this file calls things.
    pub names: Names,
}

impl AudioConfig {
    /// Reads and checks the keys of a projector file, or of a model with its towers inside; `None` if there is no tower.
    ///
    /// # Errors
    /// If keys are missing or impossible, or the tower is of a kind we do not know.
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
            // The reference ignores the key and takes the same in all norms.
            eps: 1e-6,
            bins: keys.optional("num_mel_bins")?.unwrap_or(128),
            channels: [size("a.conv1d.0.norm.weight", 0)?, size("a.conv1d.1.norm.weight", 0)?],
            taps: size("a.blk.0.conv_dw.weight", 0)?,
            made: size("mm.a.input_projection.weight", 0)?,
            out: size("mm.a.input_projection.weight", 1)?,
            names,
        };
        if !config.width.is_multiple_of(2 * config.heads) {
            let why = "the width must be a multiple of twice the heads";
            return Err(keys.bad("attention.head_count", &config.heads, why));
        }
        if config.heads > Attention::MOST_HEADS {
            let why = "attention kernels take at most 256 heads";
            return Err(keys.bad("attention.head_count", &config.heads, why));
        }
        keys.product("embedding_length", config.width, 2)?;
        if config.bins != 128 {
            return Err(keys.bad("num_mel_bins", &config.bins, "features have 128 bands"));
        }
        Ok(Some(config))
    }

    /// Numbers in a head.
    pub fn head(&self) -> usize {
        self.width / self.heads
    }

    /// Places that the bands become after both convolutions.
    pub fn bands(&self) -> usize {
        self.bins.div_ceil(2).div_ceil(2)
    }

    /// The products that may have limits.
    pub fn products(&self) -> Vec<String> {
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
        list.add(&format!("{}.weight", names.out), &[self.made, a], WIDTH);
        list.add(&format!("{}.bias", names.out), &[self.made], SHAPE);
        list.add("mm.a.input_projection.weight", &[self.out, self.made], SHAPE);
        list.may("mm.a.soft_emb_norm.weight", &[self.made], SHAPE);
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
