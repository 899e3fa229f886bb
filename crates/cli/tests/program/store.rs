//! Builds a store as Ollama would leave it on disk.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rullama_store::{Digest, ModelName};
use rullama_testkit::golden;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    models::{MICRO, small_file},
    program::{Program, rullama},
};

pub(crate) struct Store {
    folder: TempDir,
}

impl Store {
    /// A store without models.
    pub(crate) fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("blobs")).unwrap();
        Self { folder }
    }

    /// A store with one model of many layers.
    pub(crate) fn with(name: &str) -> Self {
        let store = Self::empty();
        store.add(name);
        store
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The program, told to look here.
    pub(crate) fn rullama(&self, args: &[&str]) -> Program {
        rullama(["--store", self.root().to_str().unwrap()]).and(args)
    }

    /// Adds a model with a layer of every kind.
    pub(crate) fn add(&self, name: &str) {
        let small = |name: &str| small_file().kv("test.layer", name).finish().unwrap();
        let layers = [
            self.blob("model", golden(MICRO)),
            self.blob("projector", small("projector")),
            self.blob("adapter", small("adapter")),
            self.blob("draft", small("draft")),
            self.blob("template", "{{ .Prompt }}"),
            self.blob("system", "Be brief.\nBe \x1b[31mkind."),
            self.blob("params", r#"{"temperature":0.7,"stop":["<turn|>"]}"#),
            self.blob("messages", r#"[{"role":"user","content":"Hi"}]"#),
            self.blob("license", "\n\nFirst Licence\nwith terms"),
            self.blob("license", "Second Licence"),
        ];
        let config = json!({
            "model_format": "gguf", "model_family": "gemma4", "renderer": "gemma4", "parser": "gemma4",
        });
        self.manifest(name, &json!({ "schemaVersion": 2, "config": self.blob("config", config.to_string()), "layers": layers }));
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

    /// The digest and file of the golden model.
    pub(crate) fn weights(&self) -> (Digest, PathBuf) {
        let digest = Digest::of(&golden(MICRO));
        let path = self.blob_path(&digest);
        (digest, path)
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
        let name: ModelName = name.parse().unwrap();
        self.root().join("manifests").join(name.manifest_path())
    }
}
