//! Summary of a model file, from its header.

use rullama_chat::{Capability, ChatTemplate, Family};
use rullama_gguf::{DType, Gguf, TensorInfo, Value};
use rullama_models::{Catalog, decoder::Config};

use super::{
    LoadOptions, MemoryUse,
    capability::capabilities_with,
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
        Self::with_template(gguf, vocabulary::template(gguf).ok().as_ref())
    }

    /// The summary of a file whose chat template was read by something else; without one, its conversations cannot be rendered.
    ///
    /// # Errors
    /// If it is no supported model.
    pub fn with_template(
        gguf: &Gguf,
        template: Option<&ChatTemplate>,
    ) -> Result<Self, RuntimeError> {
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
            thinking: kind.chats() && template.is_some_and(ChatTemplate::thinks),
            capabilities: capabilities_with(gguf, [], template),
            sampling: hinted(gguf, template).0,
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
    hinted(gguf, vocabulary::template(gguf).ok().as_ref())
}

fn hinted(gguf: &Gguf, template: Option<&ChatTemplate>) -> (SamplingOptions, Vec<OptionWarning>) {
    let family = template.and_then(ChatTemplate::family);
    let number = |value: &Value| match value {
        Value::F32(x) => Some(f64::from(*x)),
        Value::F64(x) => Some(*x),
        other => other.integer().map(|n| n as f64),
    };
    let mut options = recommended(family);
    let hints = gguf.metadata().iter();
    let warnings =
        options.apply_hints(hints.filter_map(|hint| Some((&*hint.key, number(&hint.value)?))));
    (options, warnings)
}

/// The sampling options that a family's publisher recommends, on its model cards or in `generation_config.json`; of options that are not
/// named there, and for unknown families, Ollama's values.
fn recommended(family: Option<Family>) -> SamplingOptions {
    let other = SamplingOptions::ollama();
    match family {
        Some(
            Family::Small
            | Family::Large
            | Family::Gemma3
            | Family::MedGemma
            | Family::FunctionGemma
            | Family::FunctionGemmaOllama
            | Family::TranslateGemma,
        ) => SamplingOptions::default(),
        Some(Family::SmolLm2) => SamplingOptions { temperature: 0.2, top_p: 0.9, ..other },
        Some(Family::Qwen2 | Family::Qwen25) => SamplingOptions {
            temperature: 0.7,
            top_p: 0.8,
            top_k: 20,
            repeat_penalty: 1.05,
            ..other
        },
        // Those for replies with thinking, which is the default.
        Some(Family::Qwen3) => {
            SamplingOptions { temperature: 0.6, top_p: 0.95, top_k: 20, ..other }
        }
        Some(Family::Llama3 | Family::Llama31) => {
            SamplingOptions { temperature: 0.6, top_p: 0.9, ..other }
        }
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use pollster::block_on;
    use rullama_gguf::{Gguf, Value, Writer};
    use rullama_source::MemorySource;

    use super::{SamplingOptions, hinted_options};

    fn options(architecture: &str, template: &str, hint: Option<f32>) -> SamplingOptions {
        let mut file = Writer::new().kv("general.architecture", architecture);
        if !template.is_empty() {
            file = file.kv("tokenizer.chat_template", template);
        }
        if let Some(hint) = hint {
            file = file.kv("general.sampling.temp", Value::F32(hint));
        }
        let source = MemorySource::new("model", file.finish().expect("a file"));
        let gguf = block_on(Gguf::open(Rc::new(source))).expect("it opens");
        hinted_options(&gguf).0
    }

    #[test]
    fn defaults_are_the_files_then_the_familys() {
        let smollm = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
            {{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}\
            {{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
            {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
        let picked = |options: SamplingOptions| (options.temperature, options.top_k, options.top_p);
        assert_eq!(picked(options("llama", smollm, None)), (0.2, 40, 0.9));
        assert_eq!(picked(options("llama", smollm, Some(0.5))), (0.5, 40, 0.9), "the file's own");
        assert_eq!(picked(options("gemma3", "", None)), (1.0, 64, 0.95));
        assert_eq!(picked(options("gemma4", "", None)), (1.0, 64, 0.95));
        assert_eq!(picked(options("llama", "", None)), (0.8, 40, 0.9), "ChatML without a name");
    }
}
