//! What there is to serve: the store's models of the families we run, and the files the user named.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use rullama_store::{Digest, Entry, Layer, LayerKind, ModelFiles, ModelName, Store, StoreError};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    content::{Content, regular_file},
    engine::ServedModel,
    facts::Facts,
    plain::ServedFile,
    served,
};

/// One model of `GET /rullama/models`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ModelRow {
    /// What it is called.
    pub name: String,
    /// When it was last changed, as RFC 3339 has it.
    pub modified: Option<String>,
    /// Bytes of all its files together; 0 where its manifest cannot be read.
    pub size: u64,
    /// The files a browser needs; none where there is an error.
    pub layers: Vec<LayerRow>,
    /// Default options.
    pub parameters: Map<String, Value>,
    /// System prompt.
    pub system: Option<String>,
    /// Why it cannot be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip)]
    pub(crate) time: Option<SystemTime>,
    #[serde(skip)]
    pub(crate) model: Option<Arc<ServedModel>>,
}

/// A file of a model.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LayerRow {
    /// `model`, `projector`, `adapter` or `drafter`.
    pub kind: &'static str,
    /// What its bytes hash to, where that is known.
    pub digest: Option<String>,
    /// Its length in bytes.
    pub size: u64,
    /// Where to get it.
    pub url: String,
}

/// All models, looked up anew when somebody asks.
#[derive(Debug)]
pub(crate) struct Catalog {
    stores: Vec<PathBuf>,
    files: Vec<ServedFile>,
    known: Mutex<Known>,
}

/// What earlier looks have found out.
#[derive(Debug, Default)]
struct Known {
    /// Headers read so far, by digest: blobs never change.
    facts: HashMap<String, Arc<Facts>>,
    /// Blobs that may be served, by digest.
    blobs: HashMap<String, Blob>,
}

/// A blob, and the manifest that allows it to be served.
#[derive(Debug, Clone)]
struct Blob {
    path: PathBuf,
    size: u64,
    manifest: PathBuf,
    stamp: Option<(u64, SystemTime)>,
}

impl Catalog {
    pub(crate) fn new(stores: Vec<PathBuf>, files: Vec<ServedFile>) -> Self {
        Self { stores, files, known: Mutex::default() }
    }

    /// All models: the user's files, then the store's, newest first.
    pub(crate) fn list(&self) -> Vec<ModelRow> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: HashSet<String> =
            self.files.iter().map(|file| file.name().to_owned()).collect();
        known.blobs.clear();
        let mut stored = Vec::new();
        for store in self.stores.iter().filter_map(|root| Store::open(root).ok()) {
            for entry in store.list().entries {
                // Of several stores, the first that has the name is the one it means.
                if names.insert(entry.name.to_string()) {
                    stored.extend(known.row(&store, &entry));
                }
            }
        }
        stored.sort_by_key(|row| std::cmp::Reverse(row.time));
        self.files.iter().map(ServedFile::row).chain(stored).collect()
    }

    /// The model that a request names, without regard to case; `None` if there is none that can be served.
    ///
    /// # Errors
    /// In words, where it is there but broken.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Arc<ServedModel>>, String> {
        if let Some(file) = self.files.iter().find(|file| file.is_named(name)) {
            let row = file.row();
            return row.error.map_or(Ok(row.model), Err);
        }
        let Ok(name) = name.parse::<ModelName>() else { return Ok(None) };
        for store in self.stores.iter().filter_map(|root| Store::open(root).ok()) {
            let Ok((_, manifest)) = store.manifest(&name) else { continue };
            let files = match store.resolve(&name) {
                Ok(files) => files,
                Err(StoreError::Remote { .. } | StoreError::NotGguf { .. }) => return Ok(None),
                Err(error) => return Err(error.to_string()),
            };
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((files, facts)) = known.check(&store, files)? else { return Ok(None) };
            let projectors = known.projectors(&files);
            let modified = fs::metadata(&manifest).and_then(|file| file.modified()).ok();
            let size = files.blobs.iter().map(|blob| blob.size).sum();
            let model = served::of_store(files, size, modified, &facts, &projectors);
            return Ok(Some(Arc::new(model)));
        }
        Ok(None)
    }

    /// The store that is written to: the first that exists, else the first.
    pub(crate) fn store(&self) -> Option<&Path> {
        let exists = self.stores.iter().find(|root| root.is_dir());
        exists.or(self.stores.first()).map(PathBuf::as_path)
    }

    /// The bytes of a blob, where a model of the list names it.
    pub(crate) fn blob(&self, digest: &Digest) -> io::Result<Option<Content>> {
        let Some(blob) = self.allowed(digest) else { return Ok(None) };
        // Not even a link that appeared since the last look is followed.
        if !fs::symlink_metadata(&blob.path)?.is_file() {
            return Ok(None);
        }
        let file = File::open(&blob.path)?;
        if file.metadata()?.len() != blob.size {
            let problem =
                "the blob has another length than its manifest says; pull the model again";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let etag = format!("\"sha256-{}\"", key(digest));
        let cache = "private, max-age=31536000, immutable";
        Ok(Some(Content { file, len: blob.size, etag, cache }))
    }

    /// The bytes of a file the user named.
    pub(crate) fn file(&self, name: &str, file_name: &str) -> io::Result<Option<Content>> {
        let mut files = self.files.iter();
        files.find(|file| file.is_called(name, file_name)).map(ServedFile::content).transpose()
    }

    /// A blob that a manifest names now. Manifests that stayed as they are need no second look.
    fn allowed(&self, digest: &Digest) -> Option<Blob> {
        let find = || {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.blobs.get(&key(digest)).cloned()
        };
        if let Some(blob) = find().filter(|blob| stamp(&blob.manifest) == blob.stamp) {
            return Some(blob);
        }
        // Unknown digests cost a look at the manifests, not at the models.
        let stores = self.stores.iter().filter_map(|root| Store::open(root).ok());
        if !stores.into_iter().any(|store| names(&store, digest)) {
            return None;
        }
        self.list();
        find()
    }
}

/// Whether a manifest of the store names a blob.
fn names(store: &Store, digest: &Digest) -> bool {
    let named = |entry: &Entry| {
        let digests = entry.summary.as_ref().map_or(&[][..], |summary| &summary.digests);
        digests.iter().any(|other| key(other) == key(digest))
    };
    store.list().entries.iter().any(named)
}

impl Known {
    /// A model of a store; nothing where it is not of our family.
    fn row(&mut self, store: &Store, entry: &Entry) -> Option<ModelRow> {
        let size = entry.summary.as_ref().map_or(0, |summary| summary.size);
        let mut row = ModelRow {
            name: entry.name.to_string(),
            modified: entry.modified.and_then(rfc3339),
            size,
            layers: vec![],
            parameters: Map::new(),
            system: None,
            error: None,
            time: entry.modified,
            model: None,
        };
        let stamp = stamp(&entry.manifest);
        match self.open(store, entry) {
            Ok(Some((files, facts))) => {
                self.allow(&files, stamp);
                let projectors = self.projectors(&files);
                fill(&mut row, files, &facts, &projectors);
            }
            Ok(None) => return None,
            Err(problem) => row.error = Some(problem),
        }
        Some(row)
    }

    /// The files of a model that can be served, or in words why it cannot.
    fn open(
        &mut self,
        store: &Store,
        entry: &Entry,
    ) -> Result<Option<(ModelFiles, Arc<Facts>)>, String> {
        let files = match store.files(entry) {
            Ok(files) => files,
            // Whole, but no weights of ours to serve.
            Err(StoreError::Remote { .. } | StoreError::NotGguf { .. }) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        self.check(store, files)
    }

    /// The same for files that are known.
    fn check(
        &mut self,
        store: &Store,
        mut files: ModelFiles,
    ) -> Result<Option<(ModelFiles, Arc<Facts>)>, String> {
        let folder = store.root().join("blobs");
        if let Some(outside) = files.blobs.iter().find(|blob| inside(&folder, &blob.path).is_none())
        {
            let (kind, path) = (outside.kind, outside.path.display());
            return Err(format!(
                "the file of its {kind} is a link that leads out of the store: {path}"
            ));
        }
        for layer in layers_mut(&mut files) {
            // What is served later is the file itself, wherever links in between point by then.
            layer.path = inside(&folder, &layer.path).unwrap_or_default();
        }
        let facts = self
            .facts(&files.model)
            .map_err(|error| format!("{error}; run `rullama pull {}` again", files.name))?;
        Ok(facts.is_served().then_some((files, facts)))
    }

    fn facts(&mut self, model: &Layer) -> Result<Arc<Facts>, crate::facts::HeaderError> {
        let digest = key(&model.digest);
        if let Some(facts) = self.facts.get(&digest) {
            return Ok(Arc::clone(facts));
        }
        let facts = Arc::new(Facts::of_file(&model.path)?);
        self.facts.insert(digest, Arc::clone(&facts));
        Ok(facts)
    }

    /// The headers of a model's projectors; those that cannot be read add nothing.
    fn projectors(&mut self, files: &ModelFiles) -> Vec<Arc<Facts>> {
        files.projectors.iter().filter_map(|layer| self.facts(layer).ok()).collect()
    }

    fn allow(&mut self, files: &ModelFiles, stamp: Option<(u64, SystemTime)>) {
        for layer in layers(files) {
            let manifest = files.manifest.clone();
            let blob = Blob { path: layer.path.clone(), size: layer.size, manifest, stamp };
            self.blobs.insert(key(&layer.digest), blob);
        }
    }
}

fn fill(row: &mut ModelRow, files: ModelFiles, facts: &Facts, projectors: &[Arc<Facts>]) {
    row.layers = layers(&files).map(layer_row).collect();
    row.parameters = files.params.clone().unwrap_or_default();
    row.system = files.system.clone();
    row.model = Some(Arc::new(served::of_store(files, row.size, row.time, facts, projectors)));
}

fn layer_row(layer: &Layer) -> LayerRow {
    let hex = key(&layer.digest);
    LayerRow {
        kind: match layer.kind {
            LayerKind::Projector => "projector",
            LayerKind::Adapter => "adapter",
            LayerKind::Draft => "drafter",
            _ => "model",
        },
        digest: Some(format!("sha256:{hex}")),
        size: layer.size,
        url: format!("/rullama/blobs/sha256-{hex}"),
    }
}

/// The files a browser needs; texts are part of the list itself.
fn layers(files: &ModelFiles) -> impl Iterator<Item = &Layer> {
    let model = std::iter::once(&files.model);
    model.chain(&files.projectors).chain(&files.adapters).chain(&files.draft)
}

fn layers_mut(files: &mut ModelFiles) -> impl Iterator<Item = &mut Layer> {
    let model = std::iter::once(&mut files.model);
    model.chain(&mut files.projectors).chain(&mut files.adapters).chain(&mut files.draft)
}

/// Where `path` really is, if that is in `folder` itself.
fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    let (folder, path) = (folder.canonicalize().ok()?, path.canonicalize().ok()?);
    (path.parent() == Some(&folder)).then_some(path)
}

/// The same digest in one way of writing.
fn key(digest: &Digest) -> String {
    digest.hex().to_ascii_lowercase()
}

/// What a change of a manifest changes.
fn stamp(manifest: &Path) -> Option<(u64, SystemTime)> {
    let metadata = regular_file(manifest).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// A time as programs exchange it, in whole seconds; nothing for times before 1970 or after 9999.
pub(crate) fn rfc3339(time: SystemTime) -> Option<String> {
    use std::fmt::Write;
    let mut text = String::new();
    let shown = write!(text, "{}", humantime::format_rfc3339_seconds(time));
    shown.is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use rullama_testkit::StoreFolder;
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_digests_open_no_model() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = StoreFolder::new(folder.path());
        let file = rullama_gguf::Writer::new().kv("general.architecture", "gemma4");
        let weights = file.finish().expect("a file");
        let config = store.blob("config", "{}");
        let layers = [store.blob("model", &weights)];
        store.manifest("gemma4", &json!({ "config": config, "layers": layers }));
        let catalog = Catalog::new(vec![folder.path().to_owned()], vec![]);
        let opened = || catalog.known.lock().expect("a lock").facts.len();
        assert!(catalog.blob(&Digest::of(b"unknown")).expect("no failure").is_none());
        assert_eq!(opened(), 0);
        assert!(catalog.blob(&Digest::of(&weights)).expect("no failure").is_some());
        assert_eq!(opened(), 1);
    }
}
