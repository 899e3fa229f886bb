//! LoRA adapters: what is in their files, and whether they fit a model.
//!
//! An adapter changes matrices of a model by a thin product: `y = W x + s · B (A x)`. Three kinds of files hold such factors (PEFT's
//! safetensors, GGUF, and rullama's own safetensors); [`Adapter::read`] makes the same plain value of each. Files lie: every shape,
//! name and number is checked, and what would change answers without being understood is refused.

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

/// The tensor whose pair changes the lookup of tokens, before it is scaled.
pub const EMBEDDING: &str = "token_embd.weight";
/// The tensor whose pair changes logits, before they are capped; also where the model has one table for both.
pub const HEAD: &str = "output.weight";

/// The factors of an adapter, by the tensors of the base model they change.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    /// What to call it in messages: a path, a URL, a file name.
    pub name: String,
    /// What kind of file it was read from.
    pub format: Format,
    /// The architecture of its base model, where the file names one: `gemma4`.
    pub architecture: Option<String>,
    /// The base model, where the file names one.
    pub base_model: Option<String>,
    /// One pair for each adapted tensor, sorted by name.
    pub pairs: Vec<Pair>,
    /// Tensors of the file that change nothing here: those of towers, norms.
    pub ignored: Vec<String>,
}

/// Kinds of files.
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
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Peft => "PEFT safetensors",
            Self::Gguf => "GGUF",
            Self::Rullama => "rullama safetensors",
        }
    }
}

/// The factors for one matrix `W` of `rows × columns`: it becomes `W + scale · B A`. The experts of a mixture are such matrices
/// one after the other, each with factors of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The tensor of the base model: `blk.0.attn_q.weight`. [`EMBEDDING`] and [`HEAD`] are told apart, whether or not the model
    /// has one table for both.
    pub tensor: String,
    /// How many matrices the tensor holds: those of experts, else one.
    pub experts: usize,
    /// The inner size.
    pub rank: usize,
    /// Rows of a matrix: numbers that come out.
    pub rows: usize,
    /// Columns of a matrix: numbers that go in.
    pub columns: usize,
    /// `A`, `rank × columns`, row by row, matrix by matrix.
    pub a: Vec<f32>,
    /// `B`, `rows × rank`, row by row, matrix by matrix.
    pub b: Vec<f32>,
    /// What the product is multiplied with: α / r, or α / √r.
    pub scale: f32,
}

impl Pair {
    /// The numbers it has.
    pub fn parameters(&self) -> usize {
        self.a.len() + self.b.len()
    }

    /// Adds the change to whole rows of the tensor, the first of which is `first`; rows are counted through its matrices.
    ///
    /// # Panics
    /// If these are no whole rows of the tensor.
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
    /// Reads an adapter of any kind. `config` is the text of the `adapter_config.json` beside a PEFT file, where there is one.
    ///
    /// # Errors
    /// If the file is broken, is no adapter, or requests something that would not be done.
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

    /// The numbers it has.
    pub fn parameters(&self) -> usize {
        self.pairs.iter().map(Pair::parameters).sum()
    }

    /// The adapter as PEFT's two files. `base_model` is the folder or repository PEFT is told it belongs to.
    ///
    /// # Errors
    /// If a tensor has no name there.
    pub fn to_peft(&self, base_model: &str) -> Result<PeftFiles, AdapterError> {
        Ok(self.peft_pieces(base_model)?.whole())
    }

    /// The same in pieces that are made one at a time.
    ///
    /// # Errors
    /// If a tensor has no name there.
    pub fn peft_pieces(&self, base_model: &str) -> Result<PeftPieces<'_>, AdapterError> {
        peft::pieces(self, base_model)
    }

    /// The adapter as a GGUF file of f32 numbers.
    ///
    /// # Errors
    /// If a name is too long for the format.
    pub fn to_gguf(&self) -> Result<Vec<u8>, AdapterError> {
        let mut bytes = Vec::new();
        self.write_gguf(&mut bytes)?;
        Ok(bytes)
    }

    /// The same, written somewhere.
    ///
    /// # Errors
    /// If a name is too long for the format, or it cannot be written.
    pub fn write_gguf(&self, out: impl io::Write) -> Result<(), AdapterError> {
        gguf::write(self, out)
    }
}
