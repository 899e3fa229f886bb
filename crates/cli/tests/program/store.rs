//! A store in a temporary folder, with models.

use std::{ops::Deref, path::PathBuf};

use rullama_store::Digest;
use rullama_testkit::{StoreFolder, golden};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    models::{MICRO, small_file},
    program::{Program, rullama},
};

pub(crate) struct Store {
    files: StoreFolder,
    _folder: TempDir,
}

impl Deref for Store {
    type Target = StoreFolder;

    fn deref(&self) -> &StoreFolder {
        &self.files
    }
}

impl Store {
    /// A store without models.
    pub(crate) fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        Self { files: StoreFolder::new(folder.path()), _folder: folder }
    }

    /// A store with one model of many layers.
    pub(crate) fn with(name: &str) -> Self {
        let store = Self::empty();
        store.add(name);
        store
    }

    /// The program with this store.
    pub(crate) fn rullama(&self, args: &[&str]) -> Program {
        rullama(["--store", self.root().to_str().unwrap()]).and(args)
    }

    /// The same by the environment, which leaves replies to a server that runs.
    pub(crate) fn by_variable(&self, args: &[&str]) -> Program {
        rullama(args).env("OLLAMA_MODELS", self.root())
    }

    /// Adds a model with a layer of every kind.
    pub(crate) fn add(&self, name: &str) {
        let small = |name: &str| small_file().kv("test.layer", name).finish().unwrap();
        let layers = [
            self.blob("model", golden(MICRO)),
            self.blob("projector", small("projector")),
            self.blob("adapter", golden("gguf/micro-e2b-lora-F32.gguf")),
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

    /// The digest and file of the golden model.
    pub(crate) fn weights(&self) -> (Digest, PathBuf) {
        let digest = Digest::of(&golden(MICRO));
        let path = self.blob_path(&digest);
        (digest, path)
    }
}
