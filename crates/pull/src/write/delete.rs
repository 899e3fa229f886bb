//! Deletes models, and blobs that no model uses any more.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use rullama_store::{Digest, ModelName, Store};

use super::{StoreLock, sync_folder};
use crate::{
    PullError,
    error::io_error,
    manifest::MAX_BYTES,
    parts::{BlobPaths, remove},
};

/// Maximum depth of the manifest tree.
const MAX_DEPTH: usize = 8;

/// The result of deleting a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The name it was stored under.
    pub name: ModelName,
    /// Its blobs that no other model uses.
    pub blobs: Vec<Digest>,
}

/// Deletes `name` from the store at `root`: its manifest first, then the blobs that no other manifest uses.
pub fn delete(root: &Path, name: &ModelName) -> Result<Deleted, PullError> {
    let store = Store::open(root)?;
    // Looked up before locking, which would create folders, and again with the lock.
    store.manifest(name)?;
    let _lock = StoreLock::acquire(root)?;
    let (name, path) = store.manifest(name)?;
    // Invalid manifests can be deleted too: everything in them that looks like a digest counts.
    let own = digests_in_file(&path).unwrap_or_default();
    fs::remove_file(&path).map_err(|e| io_error("delete", &path, e))?;
    remove_empty_folders(&path, &root.join("manifests"))?;
    let blobs = unused(root, &own);
    remove_blobs(root, &blobs)?;
    Ok(Deleted { name, blobs })
}

/// The `candidates` that no manifest uses; empty if a manifest cannot be read.
pub(super) fn unused(root: &Path, candidates: &HashSet<String>) -> Vec<Digest> {
    let mut used = HashSet::new();
    if !collect(&root.join("manifests"), MAX_DEPTH, &mut used) {
        return Vec::new();
    }
    let mut unused: Vec<&String> = candidates.difference(&used).collect();
    unused.sort();
    let digests = unused.into_iter().filter_map(|hex| Digest::parse(&format!("sha256:{hex}")));
    digests.filter(|digest| BlobPaths::new(root, digest).blob().is_file()).collect()
}

/// Deletes blobs.
pub(super) fn remove_blobs(root: &Path, digests: &[Digest]) -> Result<(), PullError> {
    for digest in digests {
        let paths = BlobPaths::new(root, digest);
        remove(&paths.blob())?;
        paths.remove_leftovers();
    }
    sync_folder(&root.join("blobs"))
}

/// The digests in a manifest, as lower-case hex.
pub(super) fn digests_in_file(path: &Path) -> Option<HashSet<String>> {
    let short = fs::metadata(path).is_ok_and(|found| found.len() <= MAX_BYTES);
    short.then(|| fs::read(path).ok()).flatten().map(|bytes| digests_in(&bytes))
}

/// Everything that looks like a digest: safer than parsing, because future manifests may have another format.
pub(crate) fn digests_in(bytes: &[u8]) -> HashSet<String> {
    let mut found = HashSet::new();
    for start in 0..bytes.len().saturating_sub(63) {
        let window = &bytes[start..start + 64];
        if window.iter().all(u8::is_ascii_hexdigit) {
            found.insert(String::from_utf8_lossy(window).to_ascii_lowercase());
        }
    }
    found
}

/// Adds the digests in all files below `folder`; false if a file could not be read.
fn collect(folder: &Path, depth: usize, used: &mut HashSet<String>) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    for entry in entries {
        let Ok(path) = entry.map(|entry| entry.path()) else { return false };
        let Ok(found) = fs::metadata(&path) else { return false };
        let read = if found.is_dir() {
            depth > 0 && collect(&path, depth - 1, used)
        } else {
            digests_in_file(&path).map(|digests| used.extend(digests)).is_some()
        };
        if !read {
            return false;
        }
    }
    true
}

/// Deletes the folders of a deleted manifest if they are empty.
fn remove_empty_folders(path: &Path, manifests: &Path) -> Result<(), PullError> {
    let folders: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
    for folder in folders.iter().take_while(|folder| *folder != manifests) {
        if fs::remove_dir(folder).is_err() {
            return sync_folder(folder); // other models are in it
        }
    }
    sync_folder(manifests)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rullama_store::Digest;

    use super::digests_in;

    proptest! {
        #[test]
        fn every_digest_in_a_manifest_is_found(
            before in "[^0-9a-fA-F]{0,9}", contents in prop::collection::vec(any::<u8>(), 1..5),
        ) {
            let digests: Vec<Digest> = contents.iter().map(|&byte| Digest::of(&[byte])).collect();
            let text: String = digests.iter().map(|digest| format!("{before}\"{digest}\"")).collect();
            let found = digests_in(text.as_bytes());
            prop_assert!(digests.iter().all(|digest| found.contains(digest.hex())));
            prop_assert!(found.len() <= digests.len());
        }
    }
}
