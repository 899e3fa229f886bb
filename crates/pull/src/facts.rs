//! The metadata of a GGUF header that config blobs need.

use std::{path::Path, rc::Rc};

use rullama_gguf::{Gguf, TensorInfo};
use rullama_source::FileSource;
use serde_json::{Map, Value, json};

use crate::PullError;

/// Metadata of one file.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) architecture: String,
    kind: String,
    parameters: u64,
    file_type: Option<u32>,
}

impl Facts {
    /// Reads the header of the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, PullError> {
        let bad = |problem: String| PullError::BadGguf { path: path.to_owned(), problem };
        let source = FileSource::open(path).map_err(|e| bad(e.to_string()))?;
        let gguf =
            pollster::block_on(Gguf::open(Rc::new(source))).map_err(|e| bad(e.to_string()))?;
        let text = |key| gguf.str(key).unwrap_or_default().to_owned();
        let elements = gguf.tensors().iter().map(TensorInfo::elements);
        Ok(Self {
            architecture: text("general.architecture"),
            kind: text("general.type"),
            parameters: elements.fold(0, u64::saturating_add),
            file_type: gguf.u32("general.file_type").ok(),
        })
    }

    /// The kind of layer for this file.
    pub(crate) fn layer_kind(&self) -> &'static str {
        match (self.kind.as_str(), self.architecture.as_str()) {
            ("adapter", _) => "adapter",
            ("mmproj", _) | (_, "clip") => "projector",
            _ => "model",
        }
    }

    /// Adds the weights' metadata to a config.
    pub(crate) fn describe(&self, config: &mut Map<String, Value>) {
        config.insert("model_format".into(), json!("gguf"));
        config.insert("model_family".into(), json!(self.architecture));
        config.insert("model_families".into(), json!([self.architecture]));
        config.insert("model_type".into(), json!(human(self.parameters)));
        config.insert("file_type".into(), json!(file_type(self.file_type)));
        if self.architecture == "gemma4" {
            config.entry("renderer").or_insert_with(|| json!("gemma4"));
            config.entry("parser").or_insert_with(|| json!("gemma4"));
        }
    }

    /// Options that every model of the architecture needs.
    pub(crate) fn default_params(&self) -> Map<String, Value> {
        let mut params = Map::new();
        if self.architecture == "gemma4" {
            params.insert("stop".into(), json!(["<turn|>"]));
        }
        params
    }
}

/// A parameter count in Ollama's format.
fn human(count: u64) -> String {
    let scaled = |unit: f64, digits: usize, letter: char| {
        let number = count as f64 / unit;
        let digits = if number.fract() == 0.0 { 0 } else { digits };
        format!("{number:.digits$}{letter}")
    };
    match count {
        1_000_000_000.. => scaled(1e9, 1, 'B'),
        1_000_000.. => scaled(1e6, 2, 'M'),
        1_000.. => scaled(1e3, 0, 'K'),
        _ => count.to_string(),
    }
}

/// The name of a `general.file_type`.
fn file_type(id: Option<u32>) -> &'static str {
    match id {
        Some(0) => "F32",
        Some(1) => "F16",
        Some(2) => "Q4_0",
        Some(3) => "Q4_1",
        Some(7) => "Q8_0",
        Some(8) => "Q5_0",
        Some(9) => "Q5_1",
        Some(10) => "Q2_K",
        Some(11) => "Q3_K_S",
        Some(12) => "Q3_K_M",
        Some(13) => "Q3_K_L",
        Some(14) => "Q4_K_S",
        Some(15) => "Q4_K_M",
        Some(16) => "Q5_K_S",
        Some(17) => "Q5_K_M",
        Some(18) => "Q6_K",
        Some(25) => "IQ4_NL",
        Some(30) => "IQ4_XS",
        Some(32) => "BF16",
        Some(38) => "MXFP4_MOE",
        Some(39) => "NVFP4",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn parameter_counts() {
        for (count, text) in [
            (999, "999"),
            (442_550, "443K"),
            (1_000_000, "1M"),
            (268_098_176, "268.10M"),
            (2_000_000_000, "2B"),
            (5_123_178_051, "5.1B"),
        ] {
            assert_eq!(human(count), text);
        }
    }
}
