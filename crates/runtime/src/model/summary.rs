//! What a file says about its model, before anything is loaded.

use rullama_chat::Family;
use rullama_gguf::{DType, Gguf, TensorInfo, Value};
use rullama_models::{Catalog, gemma4::Config};

use super::{
    Capability, LoadOptions, MemoryUse,
    kind::{ModelKind, Sizes},
};
use crate::{
    error::RuntimeError,
    options::{OptionWarning, SamplingOptions},
    vocabulary,
};

/// A model as its file's header shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What sort of model it is.
    pub kind: ModelKind,
    /// What the file calls it.
    pub title: Option<String>,
    /// The family.
    pub architecture: String,
    /// Numbers in all tensors.
    pub parameters: u64,
    /// The block format that most bytes of the weights are in.
    pub quantization: &'static str,
    /// Bytes up to the end of the last tensor.
    pub file_bytes: u64,
    /// How many layers.
    pub layers: usize,
    /// Tokens it knows.
    pub vocabulary: usize,
    /// Tokens it was trained for.
    pub trained_context: usize,
    /// Whether its template lets it think first.
    pub thinking: bool,
    /// What can be done with it; encoders in files beside it are not counted.
    pub capabilities: Vec<Capability>,
    /// Sampling that the file hints at, over the family's.
    pub sampling: SamplingOptions,
}

impl Summary {
    /// What this header says.
    ///
    /// # Errors
    /// If it is no model we can run.
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
    /// What a file's model will take on a GPU with these options.
    ///
    /// # Errors
    /// If it is no model we can run.
    pub fn of_file(gguf: &Gguf, options: &LoadOptions) -> Result<Self, RuntimeError> {
        if let Some(memory) = ModelKind::of(gguf).relative_memory(gguf, options)? {
            return Ok(memory);
        }
        let config = Config::of_file(gguf)?;
        config.check_cache(options.cache.into())?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name))?;
        Ok(Self::estimate(&config, &catalog, options))
    }
}

/// Whether the template has a switch for thoughts.
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

/// The family's sampling values under a file's hints, and what is odd about those.
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
