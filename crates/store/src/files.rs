//! The files and texts a model consists of, checked against its manifest.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    ConfigBlob, Digest, LayerKind, ModelName, StoreError,
    manifest::{BlobRef, Manifest},
    read::{read_small, regular_file_len},
};

/// Largest template, prompt or licence that is read.
const MAX_TEXT: u64 = 8 << 20;

/// The files and texts of a model. Blobs are shared between models: never write to them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelFiles {
    /// The name under which it is stored; its case may differ from the name requested.
    pub name: ModelName,
    /// The manifest.
    pub manifest: PathBuf,
    /// The model's id: the digest of its manifest.
    pub id: Digest,
    /// Properties of the model.
    pub config: ConfigBlob,
    /// The weights; of split weights the first file, which holds the metadata.
    pub model: Layer,
    /// The other files of split weights, in order.
    pub shards: Vec<Layer>,
    /// Vision and audio towers that are separate files.
    pub projectors: Vec<Layer>,
    /// LoRA adapters, to be applied in this order.
    pub adapters: Vec<Layer>,
    /// The drafter.
    pub draft: Option<Layer>,
    /// Prompt template in Go's template language.
    pub template: Option<String>,
    /// System prompt.
    pub system: Option<String>,
    /// Default options.
    pub params: Option<Map<String, Value>>,
    /// Messages every conversation starts with.
    pub messages: Option<Vec<Value>>,
    /// Licence texts.
    pub licenses: Vec<String>,
    /// Every blob named above, including texts and config, to be verified.
    pub blobs: Vec<Layer>,
}

/// A blob that exists on disk with the length in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layer {
    /// What it holds.
    pub kind: LayerKind,
    /// Its path.
    pub path: PathBuf,
    /// Its SHA-256 in the manifest.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
}

/// A model whose manifest has been found and parsed.
pub(crate) struct Found {
    pub(crate) name: ModelName,
    pub(crate) path: PathBuf,
    pub(crate) id: Digest,
    pub(crate) manifest: Manifest,
}

impl ModelFiles {
    pub(crate) fn load(blobs: PathBuf, found: Found) -> Result<Self, StoreError> {
        let Found { name, path, id, manifest } = found;
        let mut loader = Loader { name: name.to_string(), folder: blobs, used: Vec::new() };
        let config = loader.config(&manifest)?;
        let model = loader.last(&manifest, LayerKind::Model)?;
        let model = model.ok_or(StoreError::NoWeights { name: loader.name.clone() })?;
        let shards = loader.shards(&manifest)?;
        Ok(Self {
            model,
            shards,
            projectors: loader.all(&manifest, LayerKind::Projector)?,
            adapters: loader.all(&manifest, LayerKind::Adapter)?,
            draft: loader.last(&manifest, LayerKind::Draft)?,
            template: loader.text(&manifest, LayerKind::Template)?,
            system: loader.text(&manifest, LayerKind::System)?,
            params: loader.json(&manifest, LayerKind::Params)?,
            messages: loader.json(&manifest, LayerKind::Messages)?,
            licenses: loader.licenses(&manifest)?,
            blobs: loader.used,
            manifest: path,
            name,
            id,
            config,
        })
    }
}

/// Opens the blobs of one model and records them.
struct Loader {
    name: String,
    folder: PathBuf,
    used: Vec<Layer>,
}

impl Loader {
    /// The config; remote models and formats other than GGUF are refused.
    fn config(&mut self, manifest: &Manifest) -> Result<ConfigBlob, StoreError> {
        let config = match &manifest.config {
            Some(blob) => {
                let layer = self.layer(blob)?;
                ConfigBlob::from_object(&self.parse(&layer)?)
            }
            None => ConfigBlob::default(),
        };
        let name = self.name.clone();
        if config.remote_host.is_some() || config.remote_model.is_some() {
            let host = config.remote_host.unwrap_or_else(|| "another machine".into());
            return Err(StoreError::Remote { name, host });
        }
        // Hand-made stores omit the format; a model layer is GGUF then.
        let format = config.model_format.clone().unwrap_or_else(|| "gguf".into());
        if !format.eq_ignore_ascii_case("gguf") {
            return Err(StoreError::NotGguf { name, format });
        }
        Ok(config)
    }

    fn layer(&mut self, blob: &BlobRef) -> Result<Layer, StoreError> {
        let (name, kind, expected) = (self.name.clone(), blob.kind, blob.size);
        let Some((path, actual)) = find(&self.folder, &blob.digest)? else {
            let path = self.folder.join(file_name(blob.digest.hex()));
            let partial = self.folder.join(file_name(blob.digest.hex()) + "-partial").exists();
            return Err(StoreError::MissingBlob { name, kind, path, partial });
        };
        if actual != expected {
            return Err(StoreError::WrongSize { name, kind, path, expected, actual });
        }
        let layer = Layer { kind, path, digest: blob.digest.clone(), size: actual };
        self.used.push(layer.clone());
        Ok(layer)
    }

    fn all(&mut self, manifest: &Manifest, kind: LayerKind) -> Result<Vec<Layer>, StoreError> {
        manifest.of_kind(kind).map(|blob| self.layer(blob)).collect()
    }

    fn last(&mut self, manifest: &Manifest, kind: LayerKind) -> Result<Option<Layer>, StoreError> {
        manifest.of_kind(kind).last().map(|blob| self.layer(blob)).transpose()
    }

    /// The model layers before the last one, if all are files of split weights. Otherwise the last one replaces them.
    fn shards(&mut self, manifest: &Manifest) -> Result<Vec<Layer>, StoreError> {
        let mut models: Vec<&BlobRef> = manifest.of_kind(LayerKind::Model).collect();
        if !models.pop().is_some_and(|last| last.shard) {
            return Ok(Vec::new());
        }
        models.into_iter().filter(|blob| blob.shard).map(|blob| self.layer(blob)).collect()
    }

    fn text(&mut self, manifest: &Manifest, kind: LayerKind) -> Result<Option<String>, StoreError> {
        let Some(Layer { path, .. }) = self.last(manifest, kind)? else { return Ok(None) };
        match String::from_utf8(read_small(&path, MAX_TEXT)?) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(StoreError::BadText { name: self.name.clone(), kind, path }),
        }
    }

    fn json<T: DeserializeOwned>(
        &mut self,
        manifest: &Manifest,
        kind: LayerKind,
    ) -> Result<Option<T>, StoreError> {
        self.last(manifest, kind)?.map(|layer| self.parse(&layer)).transpose()
    }

    fn parse<T: DeserializeOwned>(&self, layer: &Layer) -> Result<T, StoreError> {
        let bytes = read_small(&layer.path, MAX_TEXT)?;
        serde_json::from_slice(&bytes).map_err(|source| StoreError::BadJson {
            name: self.name.clone(),
            kind: layer.kind,
            path: layer.path.clone(),
            source,
        })
    }

    /// Licences are only displayed, so invalid UTF-8 is replaced instead of refused.
    fn licenses(&mut self, manifest: &Manifest) -> Result<Vec<String>, StoreError> {
        let layers = self.all(manifest, LayerKind::License)?;
        let read = |layer: &Layer| read_small(&layer.path, MAX_TEXT);
        let texts = layers.iter().map(|layer| Ok(String::from_utf8_lossy(&read(layer)?).into()));
        texts.collect()
    }
}

fn file_name(hex: &str) -> String {
    format!("sha256-{hex}")
}

/// The file of a blob and its length.
fn find(folder: &Path, digest: &Digest) -> Result<Option<(PathBuf, u64)>, StoreError> {
    let lower = digest.hex().to_ascii_lowercase();
    let mut names = vec![file_name(digest.hex()), file_name(&lower)];
    if !cfg!(windows) {
        // Very old stores; on Windows the colon would mean an alternate data stream of the file `sha256`.
        names.push(format!("sha256:{lower}"));
    }
    for path in names.iter().map(|name| folder.join(name)) {
        match path.metadata() {
            Ok(_) => return regular_file_len(&path).map(|len| Some((path, len))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(crate::read::unreadable(&path, e)),
        }
    }
    Ok(None)
}
