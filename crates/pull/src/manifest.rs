//! Manifests of registries and of new models.

use std::collections::HashMap;

use rullama_store::Digest;
use serde::{Deserialize, Serialize};

use crate::PullError;

/// Maximum size of a manifest in bytes; more than any has.
pub(crate) const MAX_BYTES: u64 = 4 << 20;
const MAX_LAYERS: usize = 16_384;
/// Maximum size of a layer in bytes; more than any model has, and sums of sizes cannot overflow.
const MAX_LAYER_SIZE: u64 = 1 << 43;
const LAYER_TYPE: &str = "application/vnd.ollama.image.";
const CONFIG_TYPE: &str = "application/vnd.docker.container.image.v1+json";
/// The media type of manifests.
pub(crate) const MANIFEST_TYPE: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// A manifest with all its layers, including unknown kinds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    #[serde(default)]
    schema_version: u32,
    #[serde(default)]
    media_type: String,
    pub(crate) config: Blob,
    #[serde(default)]
    pub(crate) layers: Vec<Blob>,
}

/// A blob in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blob {
    #[serde(default)]
    pub(crate) media_type: String,
    #[serde(deserialize_with = "digest", serialize_with = "digest_text")]
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
}

impl Blob {
    /// A layer of one of Ollama's kinds, such as `params`.
    pub(crate) fn layer(kind: &str, digest: Digest, size: u64) -> Self {
        let media_type = format!("{LAYER_TYPE}{kind}");
        Self { media_type, digest, size, from: None, name: None }
    }

    /// A config blob.
    pub(crate) fn config(digest: Digest, size: u64) -> Self {
        Self { media_type: CONFIG_TYPE.into(), digest, size, from: None, name: None }
    }

    /// Its kind, such as `params`, if it is one of Ollama's.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.media_type.strip_prefix(LAYER_TYPE)
    }
}

impl Manifest {
    /// Parses and validates a manifest from a server.
    pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Self, PullError> {
        let bad = |problem: String| PullError::BadManifest { name: name.into(), problem };
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| bad(e.to_string()))?;
        if manifest.layers.iter().any(|layer| layer.kind() == Some("tensor")) {
            return Err(PullError::TensorLayers { name: name.into() });
        }
        if manifest.layers.len() > MAX_LAYERS {
            return Err(bad(format!("it lists {} layers", manifest.layers.len())));
        }
        let mut sizes = HashMap::new();
        for blob in manifest.blobs() {
            if blob.size > MAX_LAYER_SIZE {
                return Err(bad(format!("{} would have {} bytes", blob.digest, blob.size)));
            }
            let first = *sizes.entry(blob.digest.hex().to_ascii_lowercase()).or_insert(blob.size);
            if first != blob.size {
                return Err(bad(format!("it gives two sizes for {}", blob.digest)));
            }
        }
        Ok(manifest)
    }

    /// A manifest for a new model.
    pub(crate) fn new(config: Blob, layers: Vec<Blob>) -> Self {
        Self { schema_version: 2, media_type: MANIFEST_TYPE.into(), config, layers }
    }

    /// The file's content in Ollama's format.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// All layers, then the config: the order of pulling.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Blob> {
        self.layers.iter().chain(std::iter::once(&self.config))
    }
}

fn digest<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(deserializer)?;
    // Lower case, as in the file name.
    Digest::parse(&text.to_ascii_lowercase())
        .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a sha256 digest")))
}

fn digest_text<S: serde::Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(digest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rullama_store::Digest;
    use serde_json::json;

    use super::{Blob, Manifest};
    use crate::PullError;

    fn parse(layers: &serde_json::Value) -> Result<Manifest, PullError> {
        let config = json!({ "digest": format!("sha256:{}", "c".repeat(64)), "size": 1 });
        Manifest::parse("m", json!({ "config": config, "layers": layers }).to_string().as_bytes())
    }

    #[test]
    fn digests_and_sizes_are_checked() {
        let hex = "a".repeat(64);
        let layer =
            |digest: &str, size| json!({ "mediaType": "x", "digest": digest, "size": size });
        let good = layer(&format!("sha256:{hex}"), json!(5));
        assert_eq!(parse(&json!([good])).unwrap().blobs().count(), 2);
        for bad in [
            layer("sha256:../../../etc/passwd", json!(5)),
            layer(&format!("sha256:{hex}/"), json!(5)),
            layer(&format!("sha256:{hex}"), json!(-1)),
            layer(&format!("sha256:{hex}"), json!(1.5)),
            layer(&format!("sha256:{hex}"), json!(1u64 << 50)),
            json!({ "digest": good["digest"] }),
        ] {
            let error = parse(&json!([bad])).unwrap_err();
            assert!(matches!(error, PullError::BadManifest { .. }), "{bad}");
        }
        let other_size = layer(&format!("sha256:{}", hex.to_uppercase()), json!(6));
        assert!(parse(&json!([good, other_size])).is_err());
    }

    #[test]
    fn safetensors_are_rejected() {
        let layer = Blob::layer("tensor", Digest::of(b""), 0);
        assert!(matches!(parse(&json!([layer])), Err(PullError::TensorLayers { .. })));
    }

    proptest! {
        #[test]
        fn manifests_round_trip(
            kinds in prop::collection::vec(("[a-z]{1,8}", any::<u32>()), 0..6), junk in ".*",
        ) {
            prop_assume!(kinds.iter().all(|(kind, _)| kind != "tensor"));
            let layers = kinds.iter().enumerate().map(|(index, (kind, size))| {
                Blob::layer(kind, Digest::of(&[index as u8]), u64::from(*size))
            });
            let manifest = Manifest::new(Blob::config(Digest::of(b"config"), 7), layers.collect());
            let again = Manifest::parse("m", &manifest.to_bytes()).unwrap();
            prop_assert_eq!(again.layers, manifest.layers);
            prop_assert_eq!(again.config, manifest.config);
            prop_assert!(Manifest::parse("m", junk.as_bytes()).is_err());
        }
    }
}
