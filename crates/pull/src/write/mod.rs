//! Writes to a store atomically: a reader or a kill at any moment sees a complete model or none.

mod blob;
mod copy;
mod create;
mod delete;

use std::{
    collections::HashSet,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rullama_store::{Digest, ModelName, Store};
use sha2::{Digest as _, Sha256};

pub(crate) use blob::put_blob;
pub use blob::{Added, add_blob, has_blob};
pub use copy::copy;
pub use create::{CreateRequest, create};
pub(crate) use create::{Recipe, compose};
pub use delete::{Deleted, delete};

use crate::{
    OnProgress, Progress, PullError, error::io_error, manifest::Manifest, parts::BlobPaths,
};

/// Prefix of our temporary files. They are where Ollama looks for neither models nor blobs.
const TEMPORARY: &str = ".rullama-";

/// Exclusive access of one writer to a store, across processes. Held briefly, never during a download.
#[derive(Debug)]
pub(crate) struct StoreLock {
    root: PathBuf,
    _file: Option<File>,
}

impl StoreLock {
    /// Waits for other writers; creates the store's folders if needed.
    pub(crate) fn acquire(root: &Path) -> Result<Self, PullError> {
        for folder in ["blobs", "manifests"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(|e| io_error("create", &folder, e))?;
        }
        let file = lock_file(root);
        if let Some(file) = &file {
            // Some network drives do not support locks; Ollama uses none at all.
            let _ = file.lock();
        }
        let lock = Self { root: root.to_owned(), _file: file };
        lock.remove_stale_files();
        Ok(lock)
    }

    /// Deletes temporary manifests of killed processes: no other process writes one while we hold the lock.
    fn remove_stale_files(&self) {
        for entry in fs::read_dir(self.root.join("manifests")).into_iter().flatten().flatten() {
            let stale = entry.file_name().to_str().is_some_and(|name| {
                name.strip_prefix(TEMPORARY).is_some_and(|rest| rest.starts_with("manifest-"))
            });
            if stale {
                // Leftovers are harmless.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Writes the manifest of `name`: to a temporary file, synced, then renamed. Returns its digest, the model's id.
    pub(crate) fn write_manifest(
        &self,
        name: &ModelName,
        bytes: &[u8],
    ) -> Result<Digest, PullError> {
        let manifests = self.root.join("manifests");
        let path = manifests.join(name.manifest_path());
        let folder = path.parent().unwrap_or(&manifests);
        fs::create_dir_all(folder).map_err(|e| io_error("create", folder, e))?;
        let aside = temporary(&manifests, "manifest");
        let written = write_synced(&aside, bytes)
            .and_then(|()| fs::rename(&aside, &path))
            .map_err(|e| io_error("write", &path, e));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written?;
        sync_folder(folder)?;
        Ok(Digest::of(bytes))
    }
}

/// The file to lock. On Unix the blobs folder itself, so that the store gets no files that Ollama would not write.
fn lock_file(root: &Path) -> Option<File> {
    if cfg!(unix) {
        File::open(root.join("blobs")).ok()
    } else {
        let path = root.join("manifests").join(format!("{TEMPORARY}lock"));
        File::options().write(true).create(true).truncate(false).open(path).ok()
    }
}

/// A path in `folder` that no other writer uses.
pub(crate) fn temporary(folder: &Path, purpose: &str) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    folder.join(format!("{TEMPORARY}{purpose}-{}-{number}", std::process::id()))
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes renames in `folder` durable across a power failure. Not available on Windows.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), PullError> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| io_error("write", folder, e))?;
    }
    Ok(())
}

pub(crate) fn digest_of(hasher: Sha256) -> Digest {
    Digest::from_bytes(hasher.finalize().into())
}

/// The name under which `name` is stored: names that differ only in case are the same model.
pub(crate) fn stored_name(root: &Path, name: &ModelName) -> Result<ModelName, PullError> {
    if root.is_dir()
        && let Ok((stored, _)) = Store::open(root)?.manifest(name)
    {
        return Ok(stored);
    }
    Ok(name.clone())
}

/// Installs a model whose blobs are in the store: writes its manifest and deletes blobs that only the replaced model used.
/// `None` if a blob is missing because another process deleted the model it belonged to.
pub(crate) fn install(
    root: &Path,
    name: &ModelName,
    manifest: &Manifest,
    bytes: &[u8],
    on_progress: OnProgress<'_>,
) -> Result<Option<Digest>, PullError> {
    // No reports while we hold the lock: the caller may be slow, or change the store itself.
    crate::progress::report(on_progress, Progress::WritingManifest)?;
    let lock = StoreLock::acquire(root)?;
    let is_there = |digest: &Digest, size| BlobPaths::new(root, digest).is_complete(size);
    if !manifest.blobs().all(|blob| is_there(&blob.digest, blob.size)) {
        return Ok(None);
    }
    let path = root.join("manifests").join(name.manifest_path());
    let replaced: HashSet<String> = delete::digests_in_file(&path).unwrap_or_default();
    let id = lock.write_manifest(name, bytes)?;
    let unused = delete::unused(root, &replaced);
    delete::remove_blobs(root, &unused)?;
    drop(lock);
    // The model is complete: too late to cancel.
    if !unused.is_empty() {
        let _ = on_progress(Progress::RemovingUnusedLayers);
    }
    let _ = on_progress(Progress::Success);
    Ok(Some(id))
}
