//! A folder with the layout of Ollama's store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rullama_store::{Digest, ModelName};
use serde_json::{Value, json};

/// A store for tests; the caller removes the folder.
#[derive(Debug)]
pub struct StoreFolder {
    root: PathBuf,
}

impl StoreFolder {
    /// A store without models.
    pub fn new(root: &Path) -> Self {
        fs::create_dir_all(root.join("blobs")).expect("a folder for blobs");
        Self { root: root.to_owned() }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a blob; returns its layer for a manifest.
    pub fn blob(&self, kind: &str, content: impl AsRef<[u8]>) -> Value {
        let content = content.as_ref();
        let digest = Digest::of(content);
        fs::write(self.blob_path(&digest), content).expect("a blob");
        let media_type = format!("application/vnd.ollama.image.{kind}");
        json!({ "mediaType": media_type, "digest": digest.to_string(), "size": content.len() })
    }

    /// The path of the blob with this digest.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(format!("sha256-{}", digest.hex()))
    }

    /// Writes a model's manifest.
    pub fn manifest(&self, name: &str, manifest: &Value) {
        self.manifest_text(name, &manifest.to_string());
    }

    /// Writes any text as a model's manifest.
    pub fn manifest_text(&self, name: &str, text: &str) {
        let path = self.manifest_path(name);
        fs::create_dir_all(path.parent().expect("a path in the store")).expect("a folder");
        fs::write(path, text).expect("a manifest");
    }

    /// The path of a model's manifest.
    pub fn manifest_path(&self, name: &str) -> PathBuf {
        let name: ModelName = name.parse().expect("a model name");
        self.root.join("manifests").join(name.manifest_path())
    }
}
