//! Summary of a model file, from its header.

use rullama_chat::Family;
use rullama_gguf::{DType, Gguf, TensorInfo, Value};
use rullama_models::{Catalog, decoder::Config};

use super::{
    Capability, LoadOptions, MemoryUse,
    kind::{ModelKind, Sizes},
};
use crate::{
    error::RuntimeError,
    options::{OptionWarning, SamplingOptions},
    vocabulary,
};

/// Summary of a model file.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Kind of model.
    pub kind: ModelKind,
    /// Name in the file.
    pub title: Option<String>,
    /// Architecture.
    pub architecture: String,
    /// Number of parameters.
    pub parameters: u64,
    /// Format of most bytes of the weights.
    pub quantization: &'static str,
    /// Bytes up to the end of the last tensor.
    pub file_bytes: u64,
    /// Number of layers.
    pub layers: usize,
    /// Vocabulary size.
    pub vocabulary: usize,
    /// Trained context length in tokens.
    pub trained_context: usize,
    /// Whether its template supports thinking.
    pub thinking: bool,
    /// Capabilities, without those of projector files.
    pub capabilities: Vec<Capability>,
    /// Sampling defaults of the file, over the family's.
    pub sampling: SamplingOptions,
}

impl Summary {
    /// Reads the summary of a file.
    ///
    /// # Errors
    /// If it is no supported model.
    pub fn of(gguf: &Gguf) -> Result<Self, RuntimeError> {
        let kind = ModelKind::of(gguf);
        let Sizes { layers, vocabulary, context } = kind.sizes(gguf)?;
        Ok(Self {
            kind,
            title: gguf.str("general.name").ok().map(Into::into),
            architecture: gguf.str("general.architecture")?.into(),
            parameters: gguf
                .tensors()
                .iter()
                .map(TensorInfo::elements)
                .fold(0, u64::saturating_add),
            quantization: most_common(gguf.tensors()),
            file_bytes: gguf.tensors().iter().map(|t| t.offset() + t.nbytes()).max().unwrap_or(0),
            layers,
            vocabulary,
            trained_context: context,
            thinking: kind.chats() && thinks(gguf),
            capabilities: Capability::of(gguf),
            sampling: hinted_options(gguf).0,
        })
    }
}

impl MemoryUse {
    /// Estimates GPU memory of a file's model with these options.
    ///
    /// # Errors
    /// If it is no supported model.
    pub fn of_file(gguf: &Gguf, options: &LoadOptions) -> Result<Self, RuntimeError> {
        if let Some(memory) = ModelKind::of(gguf).other_memory(gguf, options)? {
            return Ok(memory);
        }
        let config = Config::of_file(gguf)?;
        config.check_cache(options.cache.into())?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name))?;
        Ok(Self::estimate(&config, &catalog, options))
    }
}

/// Whether the template supports thinking.
fn thinks(gguf: &Gguf) -> bool {
    let template = vocabulary::template(gguf);
    template.is_ok_and(|template| template.family().is_none_or(Family::thinks))
}

fn most_common(tensors: &[TensorInfo]) -> &'static str {
    let mut sums: Vec<(DType, u64)> = Vec::new();
    for tensor in tensors {
        match sums.iter_mut().find(|(dtype, _)| *dtype == tensor.dtype()) {
            Some((_, sum)) => *sum = sum.saturating_add(tensor.nbytes()),
            None => sums.push((tensor.dtype(), tensor.nbytes())),
        }
    }
    sums.iter().max_by_key(|(_, bytes)| *bytes).map_or("none", |(dtype, _)| dtype.name())
}

/// Sampling defaults of a file over the family's, and warnings about invalid values.
pub fn hinted_options(gguf: &Gguf) -> (SamplingOptions, Vec<OptionWarning>) {
    let number = |value: &Value| match value {
        Value::F32(x) => Some(f64::from(*x)),
        Value::F64(x) => Some(*x),
        other => other.integer().map(|n| n as f64),
    };
    let mut options = SamplingOptions::default();
    let hints = gguf.metadata().iter();
    let warnings =
        options.apply_hints(hints.filter_map(|hint| Some((&*hint.key, number(&hint.value)?))));
    (options, warnings)
}
