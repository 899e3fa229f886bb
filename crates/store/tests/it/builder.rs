//! Builds a store as Ollama would leave it on disk.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rullama_store::{Digest, ModelFiles, ModelName, Store, StoreError};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Builder {
    folder: TempDir,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("blobs")).unwrap();
        Self { folder }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.root()).unwrap()
    }

    /// Writes a blob; gives its layer for a manifest.
    pub(crate) fn blob(&self, kind: &str, content: impl AsRef<[u8]>) -> Value {
        let content = content.as_ref();
        let digest = Digest::of(content);
        fs::write(self.blob_path(&digest), content).unwrap();
        let media_type = format!("application/vnd.ollama.image.{kind}");
        json!({ "mediaType": media_type, "digest": digest.to_string(), "size": content.len() })
    }

    pub(crate) fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root().join("blobs").join(format!("sha256-{}", digest.hex()))
    }

    /// The path of the blob that `layer` names.
    pub(crate) fn path_of(&self, layer: &Value) -> PathBuf {
        self.blob_path(&Digest::parse(layer["digest"].as_str().unwrap()).unwrap())
    }

    pub(crate) fn config(&self, config: &Value) -> Value {
        self.blob("config", config.to_string())
    }

    /// A model of these layers, with an ordinary config.
    pub(crate) fn model(&self, name: &str, layers: &[Value]) {
        let config = json!({ "model_format": "gguf", "model_family": "gemma4" });
        self.manifest(name, &json!({ "config": self.config(&config), "layers": layers }));
    }

    pub(crate) fn manifest(&self, name: &str, manifest: &Value) {
        self.manifest_text(name, &manifest.to_string());
    }

    pub(crate) fn manifest_text(&self, name: &str, text: &str) {
        let path = self.manifest_path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn manifest_path(&self, name: &str) -> PathBuf {
        self.root().join("manifests").join(parse(name).manifest_path())
    }

    pub(crate) fn resolve(&self, name: &str) -> Result<ModelFiles, StoreError> {
        self.store().resolve(&parse(name))
    }
}

pub(crate) fn parse(name: &str) -> ModelName {
    name.parse().unwrap()
}
