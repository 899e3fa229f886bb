//! LoRA adapters: reading and writing their files, and checking whether they fit a model.
//!
//! An adapter changes matrices of a model by a low-rank update: `y = W x + s · B (A x)`. Three kinds of files hold such factors (PEFT's
//! safetensors, GGUF, and rullama's own safetensors); [`Adapter::read`] reads each into the same plain value. Files are not trusted:
//! every shape, name and value is checked, and unknown features that would change the model's output are refused.

mod combine;
pub mod container;
mod error;
mod fit;
mod gguf;
mod halves;
mod names;
mod own;
mod peft;
mod tensors;

use std::{io, rc::Rc};

use rullama_source::ByteSource;

pub use combine::{Weighted, combine};
pub use error::AdapterError;
pub use fit::{Fit, Misfit, Target};
pub use names::module;
pub use peft::{PeftFiles, PeftPieces};

/// The tensor whose pair changes the token embedding, before it is scaled.
pub const EMBEDDING: &str = "token_embd.weight";
/// The tensor whose pair changes the logits, before softcapping; also for models with tied embeddings.
pub const HEAD: &str = "output.weight";

/// The factors of an adapter, by the tensors of the base model they change.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    /// Name for messages: a path, a URL, a file name.
    pub name: String,
    /// Kind of file it was read from.
    pub format: Format,
    /// The architecture of its base model, where the file names one: `gemma4`.
    pub architecture: Option<String>,
    /// The base model, where the file names one.
    pub base_model: Option<String>,
    /// One pair for each adapted tensor, sorted by name.
    pub pairs: Vec<Pair>,
    /// Tensors of the file without effect here: of vision and audio encoders, norms.
    pub ignored: Vec<String>,
}

/// Kinds of adapter files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// PEFT's `adapter_model.safetensors` with its `adapter_config.json`.
    Peft,
    /// A GGUF file of type `adapter`.
    Gguf,
    /// rullama's own safetensors.
    Rullama,
}

impl Format {
    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Peft => "PEFT safetensors",
            Self::Gguf => "GGUF",
            Self::Rullama => "rullama safetensors",
        }
    }
}

/// The factors for one matrix `W` of `rows × columns`, which becomes `W + scale · B A`; for a mixture of experts, those of all experts,
/// one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The tensor of the base model, such as `blk.0.attn_q.weight`. [`EMBEDDING`] and [`HEAD`] are distinct even if the model ties them.
    pub tensor: String,
    /// Number of matrices in the tensor: experts, or 1.
    pub experts: usize,
    /// Rank of the update.
    pub rank: usize,
    /// Rows of a matrix: output features.
    pub rows: usize,
    /// Columns of a matrix: input features.
    pub columns: usize,
    /// `A`, `rank × columns`, row-major, expert by expert.
    pub a: Vec<f32>,
    /// `B`, `rows × rank`, row-major, expert by expert.
    pub b: Vec<f32>,
    /// Factor of `B A`: α / r, or α / √r.
    pub scale: f32,
}

impl Pair {
    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.a.len() + self.b.len()
    }

    /// The same with other rows of each `B`: row `i` is the one that `from` names.
    #[must_use]
    pub fn with_rows(&self, from: impl Fn(usize) -> usize) -> Self {
        let matrices = self.b.chunks_exact(self.rows * self.rank);
        let rows =
            matrices.flat_map(|b| (0..self.rows).map(|row| (b, from(row))).collect::<Vec<_>>());
        let b = rows.flat_map(|(b, row)| &b[row * self.rank..][..self.rank]).copied().collect();
        Self { b, ..self.clone() }
    }

    /// Adds the update to whole rows of the tensor, starting at row `first`, counted across its experts.
    ///
    /// # Panics
    /// If `rows` are not whole rows of the tensor.
    pub fn add_to(&self, first: usize, rows: &mut [f32]) {
        let factors = self.b[first * self.rank..].chunks_exact(self.rank);
        for (i, (row, factors)) in rows.chunks_exact_mut(self.columns).zip(factors).enumerate() {
            let a = &self.a[(first + i) / self.rows * self.rank * self.columns..];
            for (factor, a) in factors.iter().zip(a.chunks_exact(self.columns)) {
                let factor = factor * self.scale;
                row.iter_mut().zip(a).for_each(|(w, a)| *w += factor * a);
            }
        }
    }
}

impl Adapter {
    /// Reads an adapter of any format. `config` is the text of the `adapter_config.json` next to a PEFT file, if there is one.
    ///
    /// # Errors
    /// If the file is broken, is not an adapter, or needs an unsupported feature.
    pub async fn read(
        source: Rc<dyn ByteSource>,
        config: Option<&str>,
    ) -> Result<Self, AdapterError> {
        if source.len() >= 4 && &source.read(0..4).await?[..] == b"GGUF" {
            return gguf::read(source).await;
        }
        let file = container::Container::open(source).await?;
        if own::is_own(&file) { own::read(&file).await } else { peft::read(&file, config).await }
    }

    /// The largest rank of its pairs.
    pub fn rank(&self) -> usize {
        self.pairs.iter().map(|pair| pair.rank).max().unwrap_or(0)
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.pairs.iter().map(Pair::parameters).sum()
    }

    /// The adapter as PEFT's two files. `base_model` is the folder or repository of the base model, for `adapter_config.json`.
    ///
    /// # Errors
    /// If a tensor has no name in the PEFT format.
    pub fn to_peft(&self, base_model: &str) -> Result<PeftFiles, AdapterError> {
        Ok(self.peft_pieces(base_model)?.whole())
    }

    /// PEFT's files in pieces that are serialised one at a time.
    ///
    /// # Errors
    /// If a tensor has no name in the PEFT format.
    pub fn peft_pieces(&self, base_model: &str) -> Result<PeftPieces<'_>, AdapterError> {
        peft::pieces(self, base_model)
    }

    /// The adapter as a GGUF file of f32 tensors.
    ///
    /// # Errors
    /// If a name is too long for the format.
    pub fn to_gguf(&self) -> Result<Vec<u8>, AdapterError> {
        let mut bytes = Vec::new();
        self.write_gguf(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the adapter as a GGUF file of f32 tensors.
    ///
    /// # Errors
    /// If a name is too long for the format, or writing fails.
    pub fn write_gguf(&self, out: impl io::Write) -> Result<(), AdapterError> {
        gguf::write(self, out)
    }
}
