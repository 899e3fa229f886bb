//! Configuration of the encoder, from a file's keys.

use rullama_engine::ops::Attention;
use rullama_gguf::{Array, Gguf, Optional, TensorInfo, Value};

use crate::{
    decoder::expected::{List, size},
    error::ModelError,
    gemma4::vision::{CHANNELS, Grid},
    keys::Keys,
    tensors::Expected,
};

const KIND: &str = "gemma3";
const WIDTH: &str = "embedding_length";
const FFN: &str = "embedding_length and feed_forward_length";
const PATCH: &str = "patch_size and embedding_length";
const POSITIONS: &str = "image_size, patch_size and embedding_length";
/// Patches per soft token along each axis, where the file does not say.
const POOL: usize = 4;
/// Largest accepted number of patches along an axis; the released models have 64.
const MAX_PATCHES: usize = 256;

/// Configuration of a SigLIP encoder with Gemma 3's projector.
#[derive(Debug, Clone, PartialEq)]
pub struct SiglipConfig {
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
    /// Side of the square image in pixels.
    pub side: usize,
    /// Pooling side: patches per soft token along each axis.
    pub pool: usize,
    /// Width of a soft token.
    pub out: usize,
    /// Names of the tensors.
    pub(super) names: Names,
}

/// Names of tensors, without `.weight` and `.bias`; those after `norms` are relative to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) patches: &'static str,
    pub(super) positions: &'static str,
    pub(super) post_norm: &'static str,
    pub(super) soft_norm: &'static str,
    pub(super) projector: &'static str,
    pub(super) norms: [&'static str; 2],
    pub(super) attn_out: &'static str,
    pub(super) up: &'static str,
    pub(super) down: &'static str,
}

/// Names in projector files.
const SEPARATE: Names = Names {
    patches: "v.patch_embd",
    positions: "v.position_embd.weight",
    post_norm: "v.post_ln",
    soft_norm: "mm.soft_emb_norm.weight",
    projector: "mm.input_projection.weight",
    norms: ["ln1", "ln2"],
    attn_out: "attn_out",
    up: "ffn_up",
    down: "ffn_down",
};

/// Names in Ollama's files, which hold the encoder and the decoder.
const INSIDE: Names = Names {
    patches: "v.patch_embedding",
    positions: "v.position_embedding.weight",
    post_norm: "v.post_layernorm",
    soft_norm: "mm.mm_soft_emb_norm.weight",
    projector: "mm.mm_input_projection.weight",
    norms: ["layer_norm1", "layer_norm2"],
    attn_out: "attn_output",
    up: "mlp.fc1",
    down: "mlp.fc2",
};

impl SiglipConfig {
    /// Reads and checks the keys of a projector file or of a model file with the encoder; `None` if it has no such encoder.
    ///
    /// # Errors
    /// If keys are missing or impossible.
    pub fn of_file(gguf: &Gguf) -> Result<Option<Self>, ModelError> {
        let prefix = match gguf.str("general.architecture")? {
            "clip" if declares(gguf)? => "clip.vision",
            "gemma3" => "gemma3.vision",
            _ => return Ok(None),
        };
        let keys = Keys { gguf, prefix };
        let Some(layers) = keys.optional("block_count")? else { return Ok(None) };
        let names = if gguf.tensor(INSIDE.projector).is_some() { INSIDE } else { SEPARATE };
        let (patch, side) = (keys.positive("patch_size")?, keys.positive("image_size")?);
        let mut config = Self {
            layers,
            width: keys.positive("embedding_length")?,
            heads: keys.positive("attention.head_count")?,
            ffn: keys.positive("feed_forward_length")?,
            eps: keys.float("attention.layer_norm_epsilon", Some(1e-6))?,
            patch,
            side,
            pool: pool(&keys, side / patch)?,
            // The projector keeps the checkpoint's orientation: its rows are as long as a soft token.
            out: size(gguf, names.projector, 0)?,
            names,
        };
        config.check(&keys)?;
        // Early converters wrote both matrices under each other's name.
        let inputs = gguf.tensor(&format!("v.blk.0.{}.weight", names.down)).map(TensorInfo::dims);
        let swapped = inputs.and_then(|dims| dims.first()) == Some(&(config.width as u64));
        if swapped && config.width != config.ffn {
            config.names = Names { up: names.down, down: names.up, ..names };
        }
        Ok(Some(config))
    }

    /// Head size.
    pub fn head(&self) -> usize {
        self.width / self.heads
    }

    /// Patches of an image.
    pub fn grid(&self) -> Grid {
        let patches = self.side / self.patch;
        Grid { columns: patches, rows: patches }
    }

    /// Name of the position embeddings, one row per patch; the host reads them.
    pub fn positions(&self) -> &'static str {
        self.names.positions
    }

    /// Name of the bias of the patch embedding; the host reads it.
    pub fn patch_bias(&self) -> String {
        format!("{}.bias", self.names.patches)
    }

    /// All tensors the encoder uses.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        let (e, names) = (self.width, &self.names);
        let patches = format!("{}.weight", names.patches);
        list.add(&patches, &[e, CHANNELS, self.patch, self.patch], PATCH);
        list.add(&self.patch_bias(), &[e], WIDTH);
        list.add(names.positions, &[self.grid().patches(), e], POSITIONS);
        list.add(names.soft_norm, &[e], WIDTH);
        list.add(names.projector, &[e, self.out], WIDTH);
        let mut biased = |name: &str, rows: usize, inputs: Option<usize>, keys| {
            let dims: Vec<usize> = [rows].into_iter().chain(inputs).collect();
            list.add(&format!("{name}.weight"), &dims, keys);
            list.add(&format!("{name}.bias"), &[rows], keys);
        };
        biased(names.post_norm, e, None, WIDTH);
        for layer in 0..self.layers {
            let at = |name: &str| format!("v.blk.{layer}.{name}");
            names.norms.iter().for_each(|name| biased(&at(name), e, None, WIDTH));
            for name in ["attn_q", "attn_k", "attn_v", names.attn_out] {
                biased(&at(name), e, Some(e), WIDTH);
            }
            biased(&at(names.up), self.ffn, Some(e), FFN);
            biased(&at(names.down), e, Some(self.ffn), FFN);
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
        if self.patch > 64 || !self.side.is_multiple_of(self.patch) {
            let why = "the image must be whole patches of at most 64 pixels";
            return Err(keys.bad("patch_size", &self.patch, why));
        }
        let across = self.side / self.patch;
        if across > MAX_PATCHES || !across.is_multiple_of(self.pool) {
            let why = "an image must have at most 256 patches along an axis, in whole soft tokens";
            return Err(keys.bad("image_size", &self.side, why));
        }
        if self.layers > 256 {
            let why = "too many layers, the file is damaged";
            return Err(keys.bad("block_count", &self.layers, why));
        }
        for (name, wanted) in [("image_mean", 0.5), ("image_std", 0.5)] {
            if let Some(Value::Array(Array::F32(values))) = keys.gguf.get(&keys.key(name))
                && values.iter().any(|value| *value != wanted)
            {
                let why = "only pixel values from -1 to 1 are supported, mean and deviation 0.5";
                return Err(keys.bad(name, &format!("{values:?}"), why));
            }
        }
        Ok(())
    }
}

/// Whether a projector file says that it is Gemma 3's.
fn declares(gguf: &Gguf) -> Result<bool, ModelError> {
    let kind = |key: &str| gguf.str(key).optional();
    let kind = kind("clip.vision.projector_type")?.or(kind("clip.projector_type")?);
    Ok(kind == Some(KIND))
}

/// The pooling side: as the file says, or by its number of soft tokens.
fn pool(keys: &Keys<'_>, across: usize) -> Result<usize, ModelError> {
    if let Some(pool) = keys.optional("projector.scale_factor")? {
        return match pool {
            1..=16 => Ok(pool),
            _ => Err(keys.bad("projector.scale_factor", &pool, "it must be 1 to 16")),
        };
    }
    let model = Keys { gguf: keys.gguf, prefix: "gemma3.mm" };
    let Some(tokens) = model.optional("tokens_per_image")? else { return Ok(POOL) };
    let pool = across / tokens.isqrt().max(1);
    let fits = pool > 0 && (across / pool).pow(2) == tokens;
    let why = "it must be a square that divides the patches of an image";
    fits.then_some(pool).ok_or_else(|| model.bad("tokens_per_image", &tokens, why))
}
