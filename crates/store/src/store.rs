//! A store on disk: listing its models and resolving names.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    Digest, ModelFiles, ModelName, Outcome, Searched, StoreError,
    files::Found,
    manifest::{MAX_BYTES, Manifest},
    read::{read_small, unreadable},
    similar::similar,
};

/// A model store, opened for reading.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// The models in a store.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listing {
    /// The models, sorted by name.
    pub entries: Vec<Entry>,
    /// Folders that could not be read.
    pub unreadable: Vec<StoreError>,
}

/// A model in a store.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    /// Its name.
    pub name: ModelName,
    /// Its manifest.
    pub manifest: PathBuf,
    /// When the manifest was last written.
    pub modified: Option<SystemTime>,
    /// The contents of the manifest, or why it is invalid.
    pub summary: Result<Summary, StoreError>,
}

/// Summary of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The digest of the manifest. Ollama shows its [short form](Digest::short).
    pub id: Digest,
    /// Bytes of all its blobs together.
    pub size: u64,
    /// Digests of its blobs.
    pub digests: Vec<Digest>,
}

/// The files of `name` in the first of the stores at `roots` that has it.
pub fn resolve(roots: &[PathBuf], name: &ModelName) -> Result<ModelFiles, StoreError> {
    let (store, found) = search(roots, name)?;
    store.load(found)
}

/// The first of the stores at `roots` that has `name`, even if its manifest is broken.
pub fn store_of(roots: &[PathBuf], name: &ModelName) -> Result<Store, StoreError> {
    search(roots, name).map(|(store, _)| store)
}

/// A store with the stored name and the manifest of `name`.
fn search(
    roots: &[PathBuf],
    name: &ModelName,
) -> Result<(Store, (ModelName, PathBuf)), StoreError> {
    let mut searched = Vec::new();
    let mut known = Vec::new();
    for root in roots {
        let outcome = match Store::open(root) {
            Ok(store) => match store.find(name) {
                Ok(found) => return Ok((store, found)),
                Err(walk) => {
                    known.extend(walk.manifests.into_iter().map(|(name, _)| name));
                    if walk.unreadable.is_empty() { Outcome::Read } else { Outcome::Unreadable }
                }
            },
            Err(StoreError::NoStore { .. }) => Outcome::NoFolder,
            Err(_) => Outcome::Unreadable,
        };
        searched.push(Searched { root: root.clone(), outcome });
    }
    let similar = similar(name, &known);
    Err(StoreError::NotFound { name: name.to_string(), searched, similar })
}

impl Store {
    /// The store in the folder `root`.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let root = root.into();
        match fs::metadata(&root) {
            Ok(metadata) if metadata.is_dir() => Ok(Self { root }),
            Ok(_) => Err(StoreError::NoStore { root }),
            Err(e) if missing(&e) => Err(StoreError::NoStore { root }),
            Err(e) => Err(unreadable(&root, e)),
        }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All models. A broken one has an entry with the error in `summary`.
    pub fn list(&self) -> Listing {
        let walk = self.walk();
        let entries = walk.manifests.into_iter().map(|(name, manifest)| Entry {
            modified: fs::metadata(&manifest).and_then(|m| m.modified()).ok(),
            summary: read_manifest(&manifest).map(|(id, parsed)| Summary {
                id,
                size: parsed.size,
                digests: parsed.digests(),
            }),
            name,
            manifest,
        });
        Listing { entries: entries.collect(), unreadable: walk.unreadable }
    }

    /// The files of `name`. If no model has exactly this name, case is ignored.
    pub fn resolve(&self, name: &ModelName) -> Result<ModelFiles, StoreError> {
        resolve(std::slice::from_ref(&self.root), name)
    }

    /// The files of a listed model, without the search of [`resolve`](Self::resolve).
    ///
    /// # Errors
    /// If the model has changed since, or is broken.
    pub fn files(&self, entry: &Entry) -> Result<ModelFiles, StoreError> {
        self.load((entry.name.clone(), entry.manifest.clone()))
    }

    /// The stored name and the manifest of `name`; its blobs are not checked. Case is ignored as in
    /// [`resolve`](Self::resolve).
    ///
    /// # Errors
    /// If there is no such model.
    pub fn manifest(&self, name: &ModelName) -> Result<(ModelName, PathBuf), StoreError> {
        self.find(name).map_err(|walk| {
            let outcome =
                if walk.unreadable.is_empty() { Outcome::Read } else { Outcome::Unreadable };
            let known: Vec<ModelName> = walk.manifests.into_iter().map(|(name, _)| name).collect();
            StoreError::NotFound {
                name: name.to_string(),
                searched: vec![Searched { root: self.root.clone(), outcome }],
                similar: similar(name, &known),
            }
        })
    }

    /// The manifest of `name`, or all manifests if it is missing. Names are compared with directory entries and never
    /// joined to a path, so that none can escape the store, and the stored case is known.
    fn find(&self, name: &ModelName) -> Result<(ModelName, PathBuf), Walk> {
        let mut walk = self.walk();
        let exact = |other: &ModelName| name.parts() == other.parts();
        let same = |other: &ModelName| {
            name.parts().iter().zip(other.parts()).all(|(a, b)| a.eq_ignore_ascii_case(b))
        };
        let mut names = walk.manifests.iter().map(|(other, _)| other);
        match names.clone().position(exact).or_else(|| names.position(same)) {
            Some(index) => Ok(walk.manifests.swap_remove(index)),
            None => Err(walk),
        }
    }

    fn load(&self, (name, path): (ModelName, PathBuf)) -> Result<ModelFiles, StoreError> {
        let (id, manifest) = read_manifest(&path)?;
        ModelFiles::load(self.root.join("blobs"), Found { name, path, id, manifest })
    }

    fn walk(&self) -> Walk {
        #[cfg(test)]
        tests::WALKS.set(tests::WALKS.get() + 1);
        let mut walk = Walk::default();
        walk.descend(&self.root.join("manifests"), &mut Vec::new());
        walk.manifests.sort();
        walk
    }
}

/// The manifests found by walking a store.
#[derive(Debug, Default)]
struct Walk {
    manifests: Vec<(ModelName, PathBuf)>,
    unreadable: Vec<StoreError>,
}

impl Walk {
    /// Descends exactly four levels: host, namespace, model, tag. Names that are not valid in a model name are skipped.
    fn descend(&mut self, folder: &Path, above: &mut Vec<String>) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // A store without models has no such folder, and models may be deleted while we walk.
            Err(e) if missing(&e) => return,
            Err(e) => return self.unreadable.push(unreadable(folder, e)),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => return self.unreadable.push(unreadable(folder, e)),
            };
            let Ok(part) = entry.file_name().into_string() else { continue };
            let path = entry.path();
            let Ok(metadata) = fs::metadata(&path) else { continue };
            above.push(part);
            if let [host, namespace, model, tag] = above.as_slice() {
                let name = ModelName::from_parts([host, namespace, model, tag]);
                if let (Some(name), true) = (name, metadata.is_file()) {
                    self.manifests.push((name, path));
                }
            } else if metadata.is_dir() {
                self.descend(&path, above);
            }
            above.pop();
        }
    }
}

fn read_manifest(path: &Path) -> Result<(Digest, Manifest), StoreError> {
    let bytes = read_small(path, MAX_BYTES)?;
    let manifest = Manifest::parse(&bytes)
        .map_err(|problem| StoreError::BadManifest { path: path.into(), problem })?;
    Ok((Digest::of(&bytes), manifest))
}

fn missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::Store;

    thread_local! {
        /// Number of walks through stores.
        pub(super) static WALKS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn all_files_of_a_store_take_one_walk() {
        let folder = tempfile::tempdir().expect("a folder");
        let digest = "0".repeat(64);
        let blobs = folder.path().join("blobs");
        let models = folder.path().join("manifests/registry.ollama.ai/library/m");
        std::fs::create_dir_all(&blobs).expect("a folder");
        std::fs::create_dir_all(&models).expect("a folder");
        std::fs::write(blobs.join(format!("sha256-{digest}")), b"x").expect("a blob");
        let layer = format!(
            r#"{{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:{digest}","size":1}}"#
        );
        for tag in 0..20 {
            let manifest = format!(r#"{{"schemaVersion":2,"layers":[{layer}]}}"#);
            std::fs::write(models.join(format!("t{tag}")), manifest).expect("a manifest");
        }
        let store = Store::open(folder.path()).expect("a store");
        WALKS.set(0);
        let listing = store.list();
        assert_eq!(listing.entries.len(), 20);
        for entry in &listing.entries {
            let files = store.files(entry).expect("whole");
            assert_eq!(files.model.digest, entry.summary.as_ref().expect("read").digests[0]);
        }
        assert_eq!(WALKS.get(), 1);
    }
}
