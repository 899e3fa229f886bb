//! The crate's error type.
//!
//! Names from files are shown escaped, since they may hold control characters.

use rullama_gguf::GgufError;
use rullama_source::SourceError;

use crate::fit::Misfit;

/// Why an adapter cannot be read, written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant explains its fields")]
pub enum AdapterError {
    // Reading
    /// The source could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The GGUF file is broken.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The file is neither GGUF nor safetensors, or is broken.
    #[error("{name:?} is not an adapter: neither GGUF nor safetensors ({why})")]
    NotAnAdapter { name: String, why: String },
    /// The file is larger than the address space.
    #[error("the adapter has {bytes} bytes, which do not fit in memory")]
    TooLarge { bytes: u64 },
    /// A GGUF file that is not a LoRA adapter.
    #[error("{name:?} is a GGUF file of type {found:?}, not an adapter; give a model as MODEL")]
    WrongType { name: String, found: String },

    // Configuration
    /// A PEFT file without its configuration.
    #[error("{name:?} has no alpha: put its adapter_config.json into the same folder")]
    NoConfig { name: String },
    /// The configuration is not JSON, or a field has the wrong type.
    #[error("cannot read adapter_config.json: {why}")]
    BadConfig { why: String },
    /// A pattern of the configuration is not a regular expression.
    #[error("adapter_config.json has an invalid pattern {pattern:?}: {why}")]
    BadPattern { pattern: String, why: String },
    /// A feature that would change the model's output and is not implemented.
    #[error("the adapter uses {what}, which is not supported: train or export it without")]
    Unsupported { what: &'static str },
    /// A parameter outside of its range.
    #[error("the adapter's {key} is {value:?}: it must be {wanted}")]
    BadNumber { key: &'static str, value: String, wanted: &'static str },

    // Tensors
    /// Tensor names of no known module.
    #[error("the adapter has unknown tensors: {}", crate::names::list(names))]
    UnknownTensors { names: Vec<String> },
    /// Two tensors for the same half of a pair.
    #[error("the adapter has {half} of {tensor:?} twice: split a file with several adapters")]
    Twice { tensor: String, half: &'static str },
    /// One half of a pair is missing.
    #[error("the adapter has no {half} of {tensor:?}: the file is incomplete")]
    Missing { tensor: String, half: &'static str },
    /// A tensor that is not a matrix.
    #[error(
        "{tensor:?} of the adapter has shape {shape:?}, but must be a matrix: the file is damaged"
    )]
    NotAMatrix { tensor: String, shape: Vec<u64> },
    /// A and B have different ranks.
    #[error("A of {tensor:?} has rank {a}, its B has rank {b}: the file contradicts itself")]
    Ranks { tensor: String, a: usize, b: usize },
    /// A and B have different numbers of experts.
    #[error("A of {tensor:?} is for {a} experts, its B for {b}: the file contradicts itself")]
    Experts { tensor: String, a: usize, b: usize },
    /// The rank differs from the configuration's.
    #[error("{tensor:?} has rank {found}, but the adapter's configuration says {wanted}")]
    WrongRank { tensor: String, found: usize, wanted: usize },
    /// An unsupported data type.
    #[error("{tensor:?} of the adapter is stored as {dtype}: only F32, F16 and BF16 are read")]
    DType { tensor: String, dtype: String },
    /// A tensor with NaN or infinite values.
    #[error(
        "{tensor:?} of the adapter holds NaN or infinity: training diverged or the file is damaged"
    )]
    NotFinite { tensor: String },
    /// A file without LoRA pairs.
    #[error("{name:?} has no LoRA pairs for the language model")]
    Empty { name: String },

    // Use
    /// The adapter was trained for another model.
    #[error("the adapter {name:?} does not fit the model: {}", crate::fit::list(misfits))]
    DoesNotFit { name: String, misfits: Vec<Misfit> },
    /// A tensor without a name in the PEFT format.
    #[error("{tensor:?} has no name in the PEFT format: write the adapter as a GGUF file")]
    NoPeftName { tensor: String },
    /// The safetensors file could not be serialised.
    #[error("cannot write the safetensors file: {why}")]
    Write { why: String },
}
