//! Manifests: small JSON files that list the layers of a model.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::{Digest, ManifestProblem};

/// Largest manifest that is read. Most have a few kilobytes; safetensors models with a layer per tensor have more.
pub(crate) const MAX_BYTES: u64 = 4 << 20;
const MAX_LAYERS: usize = 16_384;

/// What a blob holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerKind {
    /// Weights, as GGUF.
    Model,
    /// A separate vision or audio projector, as GGUF.
    Projector,
    /// A LoRA adapter, as GGUF.
    Adapter,
    /// A small model that drafts tokens, as GGUF.
    Draft,
    /// The prompt template.
    Template,
    /// The system prompt.
    System,
    /// Default options, as a JSON object.
    Params,
    /// Example messages, as a JSON array.
    Messages,
    /// A licence text.
    License,
    /// Properties of the model, as a JSON object.
    Config,
}

impl LayerKind {
    /// The kind of a media type; `None` for unknown and obsolete ones.
    fn of(media_type: &str) -> Option<Self> {
        Some(match media_type.strip_prefix("application/vnd.ollama.image.")? {
            "model" => Self::Model,
            "projector" => Self::Projector,
            "adapter" => Self::Adapter,
            "draft" => Self::Draft,
            "template" | "prompt" => Self::Template,
            "system" => Self::System,
            "params" => Self::Params,
            "messages" => Self::Messages,
            "license" => Self::License,
            _ => return None,
        })
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Projector => "projector",
            Self::Adapter => "adapter",
            Self::Draft => "draft model",
            Self::Template => "template",
            Self::System => "system prompt",
            Self::Params => "parameters",
            Self::Messages => "messages",
            Self::License => "license",
            Self::Config => "config",
        })
    }
}

/// A blob as the manifest describes it.
#[derive(Debug, Clone)]
pub(crate) struct BlobRef {
    pub(crate) kind: LayerKind,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    /// Whether its name marks it as one file of split weights: `x-00002-of-00005.gguf`.
    pub(crate) shard: bool,
}

#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) config: Option<BlobRef>,
    /// Layers of known kinds, in the file's order.
    pub(crate) layers: Vec<BlobRef>,
    /// Bytes of all blobs, including unknown kinds.
    pub(crate) size: u64,
}

impl Manifest {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ManifestProblem> {
        let raw: RawManifest = serde_json::from_slice(bytes)?;
        let layers = raw.layers.unwrap_or_default();
        if layers.len() > MAX_LAYERS {
            return Err(ManifestProblem::TooManyLayers { count: layers.len(), max: MAX_LAYERS });
        }
        let config = raw.config;
        if config.is_none() && layers.is_empty() {
            return Err(ManifestProblem::NoConfig);
        }
        let size = layers
            .iter()
            .chain(&config)
            .fold(0, |sum: u64, layer| sum.saturating_add(layer.size.as_u64().unwrap_or(0)));
        let known = layers.iter().filter_map(|layer| {
            LayerKind::of(layer.media_type.as_str()?).map(|kind| layer.checked(kind))
        });
        Ok(Self {
            config: config.map(|config| config.checked(LayerKind::Config)).transpose()?,
            layers: known.collect::<Result<_, _>>()?,
            size,
        })
    }

    /// Digests of all blobs of known kinds.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        self.layers.iter().chain(&self.config).map(|blob| blob.digest.clone()).collect()
    }

    /// The layers of one kind, in order.
    pub(crate) fn of_kind(&self, kind: LayerKind) -> impl Iterator<Item = &BlobRef> {
        self.layers.iter().filter(move |layer| layer.kind == kind)
    }
}

#[derive(Deserialize)]
struct RawManifest {
    config: Option<RawLayer>,
    layers: Option<Vec<RawLayer>>,
}

/// Fields of any type, because layers of unknown kinds are not checked.
#[derive(Deserialize)]
struct RawLayer {
    #[serde(default, rename = "mediaType")]
    media_type: Value,
    #[serde(default)]
    digest: Value,
    #[serde(default)]
    size: Value,
    #[serde(default)]
    name: Value,
}

impl RawLayer {
    fn checked(&self, kind: LayerKind) -> Result<BlobRef, ManifestProblem> {
        let digest = self.digest.as_str().and_then(Digest::parse).ok_or_else(|| {
            let digest = self.digest.as_str().unwrap_or_default().to_owned();
            ManifestProblem::BadDigest { kind, digest }
        })?;
        let size = self.size.as_u64().ok_or(ManifestProblem::BadSize { kind })?;
        let shard = self.name.as_str().is_some_and(is_shard);
        Ok(BlobRef { kind, digest, size, shard })
    }
}

fn is_shard(name: &str) -> bool {
    let number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    name.to_ascii_lowercase()
        .strip_suffix(".gguf")
        .and_then(|stem| stem.rsplit_once("-of-"))
        .and_then(|(rest, count)| Some((rest.rsplit_once('-')?.1, count)))
        .is_some_and(|(index, count)| number(index) && number(count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::Manifest;

    fn any_value() -> impl Strategy<Value = Value> {
        let hex = "[0-9a-f]{64}".prop_map(|hex| json!(format!("sha256:{hex}")));
        let kind = "(model|draft|license|tensor|x)"
            .prop_map(|kind| json!(format!("application/vnd.ollama.image.{kind}")));
        prop_oneof![
            hex,
            kind,
            Just(Value::Null),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,70}".prop_map(Value::from),
        ]
    }

    proptest! {
        #[test]
        fn any_layers_parse_or_say_why(
            layers in prop::collection::vec((any_value(), any_value(), any_value()), 0..4),
            any_text in ".*",
        ) {
            let layer = |(kind, digest, size): &(Value, Value, Value)| {
                json!({ "mediaType": kind, "digest": digest, "size": size })
            };
            let layers: Vec<Value> = layers.iter().map(layer).collect();
            let config = json!({ "digest": format!("sha256-{}", "0".repeat(64)), "size": 0 });
            let text = json!({ "config": config, "layers": layers }).to_string();
            match Manifest::parse(text.as_bytes()) {
                Ok(manifest) => prop_assert!(manifest.layers.len() <= layers.len()),
                Err(problem) => prop_assert!(!problem.to_string().is_empty()),
            }
            prop_assert!(Manifest::parse(any_text.as_bytes()).is_err());
        }
    }
}
