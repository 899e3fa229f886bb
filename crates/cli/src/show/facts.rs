//! A summary of a model. Missing or invalid values are omitted, because `show` must also work on broken files.

use rullama::Location;
use rullama_gguf::{Gguf, TensorInfo};

use crate::{locate::capabilities, output::safe};

/// Summary of a model.
pub(super) struct Facts {
    pub(super) architecture: Option<String>,
    pub(super) name: Option<String>,
    pub(super) parameters: u64,
    pub(super) file_type: Option<String>,
    pub(super) context_length: Option<u64>,
    pub(super) embedding_length: Option<u64>,
    pub(super) block_count: Option<u64>,
    pub(super) vocabulary: Option<usize>,
    pub(super) vision: bool,
    pub(super) audio: bool,
    pub(super) capabilities: Vec<&'static str>,
}

impl Facts {
    pub(super) fn of(location: &Location, gguf: &Gguf) -> Self {
        let architecture = gguf.str("general.architecture").ok().map(str::to_owned);
        let prefix = architecture.clone().unwrap_or_default();
        let number = |key: &str| gguf.u64(&format!("{prefix}.{key}")).ok();
        let has =
            |start: &str| gguf.tensors().iter().any(|tensor| tensor.name().starts_with(start));
        Self {
            name: gguf.str("general.name").ok().map(str::to_owned),
            // A server may claim a length for which the sum overflows.
            parameters: gguf
                .tensors()
                .iter()
                .map(TensorInfo::elements)
                .fold(0, u64::saturating_add),
            file_type: gguf.u32("general.file_type").ok().map(file_type),
            context_length: number("context_length"),
            embedding_length: number("embedding_length"),
            block_count: number("block_count"),
            vocabulary: gguf.strings("tokenizer.ggml.tokens").ok().map(|tokens| tokens.len()),
            vision: has("v."),
            audio: has("a."),
            capabilities: capabilities(location, gguf),
            architecture,
        }
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let towers: Vec<&str> = [(self.vision, "vision"), (self.audio, "audio")]
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, name)| name)
            .collect();
        let facts = [
            ("architecture", self.architecture.as_deref().map(safe)),
            ("name", self.name.as_deref().map(safe)),
            ("parameters", (self.parameters > 0).then(|| count(self.parameters))),
            ("quantization", self.file_type.clone()),
            ("context length", self.context_length.map(|n| n.to_string())),
            ("embedding length", self.embedding_length.map(|n| n.to_string())),
            ("layers", self.block_count.map(|n| n.to_string())),
            ("vocabulary", self.vocabulary.map(|n| format!("{n} tokens"))),
            ("encoders", (!towers.is_empty()).then(|| towers.join(", "))),
            ("can", (!self.capabilities.is_empty()).then(|| self.capabilities.join(", "))),
        ];
        facts.into_iter().filter_map(|(name, value)| Some(vec![name.to_owned(), value?])).collect()
    }
}

/// Parameter count, such as 5.1B.
fn count(parameters: u64) -> String {
    match parameters {
        1_000_000_000.. => format!("{:.1}B", parameters as f64 / 1e9),
        1_000_000.. => format!("{:.1}M", parameters as f64 / 1e6),
        _ => format!("{:.1}K", parameters as f64 / 1e3),
    }
}

/// The name of a `general.file_type`; informative only, each tensor has its own type.
fn file_type(id: u32) -> String {
    let known = [
        (0, "F32"),
        (1, "F16"),
        (2, "Q4_0"),
        (3, "Q4_1"),
        (7, "Q8_0"),
        (8, "Q5_0"),
        (9, "Q5_1"),
        (10, "Q2_K"),
        (11, "Q3_K_S"),
        (12, "Q3_K_M"),
        (13, "Q3_K_L"),
        (14, "Q4_K_S"),
        (15, "Q4_K_M"),
        (16, "Q5_K_S"),
        (17, "Q5_K_M"),
        (18, "Q6_K"),
        (25, "IQ4_NL"),
        (30, "IQ4_XS"),
        (32, "BF16"),
        (38, "MXFP4_MOE"),
        (39, "NVFP4"),
    ];
    known
        .iter()
        .find(|(known, _)| *known == id)
        .map_or_else(|| format!("type {id}"), |(_, name)| (*name).to_owned())
}
