//! Families of decoders. A family is a page: a description of what its layers compute, and a function that reads its keys. One builder
//! ([`crate::decoder`]) writes the graphs of all of them.
//!
//! To add a family, write a page with a [`Family`] and its `read` function, and name it in [`Family::ALL`].

mod gemma3;
mod gemma4;
mod llama;

use rullama_engine::ops::{Activation, RopePairs};
use rullama_gguf::Gguf;

use crate::{decoder::Config, error::ModelError};

pub use gemma3::GEMMA3;
pub use gemma4::GEMMA4;
pub(crate) use gemma4::read as read_gemma4;
pub use llama::{LLAMA, QWEN2, QWEN3, dense};

/// What sets the decoders of a family apart.
#[derive(Debug)]
pub struct Family {
    /// What files call it (`general.architecture`); also the prefix of its keys.
    pub architecture: &'static str,
    /// Whether branches have a norm before they are added to the residual stream, besides the one at their beginning.
    pub post_norms: bool,
    /// Whether queries and keys have a norm of each head, with a weight.
    pub qk_norm: bool,
    /// Whether values have one, without a weight.
    pub v_norm: bool,
    /// Which elements of a head RoPE rotates together.
    pub pairs: RopePairs,
    /// The activation of the feed-forward gate.
    pub activation: Activation,
    /// Whether embeddings are multiplied with the root of their width.
    pub scaled_embeddings: bool,
    /// Whether the tokens of an image attend to each other bidirectionally on global layers, too, not only on sliding ones.
    pub global_image_blocks: bool,
    /// Whether a block may have tensors besides those the graph uses: they are skipped, and otherwise refused.
    pub skips_tensors: bool,
    /// Reads and checks the keys of a file.
    pub read: fn(&'static Self, &Gguf) -> Result<Config, ModelError>,
}

impl Family {
    /// All families.
    pub const ALL: [&'static Self; 5] = [&GEMMA4, &GEMMA3, &LLAMA, &QWEN2, &QWEN3];

    /// The family of a file.
    ///
    /// # Errors
    /// If the file holds another kind of model.
    pub fn of_file(gguf: &Gguf) -> Result<&'static Self, ModelError> {
        let found = gguf.str("general.architecture")?;
        let family = Self::ALL.into_iter().find(|family| family.architecture == found);
        family.ok_or_else(|| ModelError::Architecture {
            file: gguf.name().into(),
            found: found.into(),
        })
    }
}

impl PartialEq for Family {
    fn eq(&self, other: &Self) -> bool {
        self.architecture == other.architecture
    }
}
