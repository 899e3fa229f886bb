//! A store in a temporary folder.

use std::{ops::Deref, path::PathBuf};

use rullama_store::{Digest, ModelFiles, ModelName, Store, StoreError};
use rullama_testkit::StoreFolder;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Builder {
    files: StoreFolder,
    _folder: TempDir,
}

impl Deref for Builder {
    type Target = StoreFolder;

    fn deref(&self) -> &StoreFolder {
        &self.files
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self { files: StoreFolder::new(folder.path()), _folder: folder }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.root()).unwrap()
    }

    /// The path of the blob that `layer` names.
    pub(crate) fn path_of(&self, layer: &Value) -> PathBuf {
        self.blob_path(&Digest::parse(layer["digest"].as_str().unwrap()).unwrap())
    }

    pub(crate) fn config(&self, config: &Value) -> Value {
        self.blob("config", config.to_string())
    }

    /// Writes a model with these layers and an ordinary config.
    pub(crate) fn model(&self, name: &str, layers: &[Value]) {
        let config = json!({ "model_format": "gguf", "model_family": "gemma4" });
        self.manifest(name, &json!({ "config": self.config(&config), "layers": layers }));
    }

    pub(crate) fn resolve(&self, name: &str) -> Result<ModelFiles, StoreError> {
        self.store().resolve(&parse(name))
    }
}

pub(crate) fn parse(name: &str) -> ModelName {
    name.parse().unwrap()
}
