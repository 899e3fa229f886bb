//! Files that no output may replace: files opened for reading, and everything in a store.
//!
//! The list is global, so that no command can forget to pass it: code that opens an input registers it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};

use super::folder;

static INPUTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static STORES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Registers an input file, for the lifetime of the process.
pub(crate) fn protect(path: &Path) {
    add(&INPUTS, path);
}

/// Registers the folder of a store: its blobs and manifests are shared with other programs.
pub(crate) fn protect_store(root: &Path) {
    add(&STORES, root);
}

fn add(list: &Mutex<Vec<PathBuf>>, path: &Path) {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    if !list.iter().any(|known| known == path) {
        list.push(path.to_owned());
    }
}

fn all(list: &Mutex<Vec<PathBuf>>) -> Vec<PathBuf> {
    list.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The path of an output, links resolved; an error if it is a protected file.
pub(crate) fn check(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().context("the path has no file name")?;
    let target = match path.canonicalize() {
        Ok(existing) => existing,
        Err(_) => {
            let folder = folder(path);
            let found = folder.canonicalize();
            found.with_context(|| format!("the folder {}", folder.display()))?.join(name)
        }
    };
    let output = Identity::of(&target);
    if all(&INPUTS).iter().any(|input| output.is(input)) {
        bail!("this command reads the file, so it cannot also write it; choose another output");
    }
    for root in all(&STORES) {
        let parts = ["blobs", "manifests"].map(|part| root.join(part));
        let inside = parts
            .iter()
            .any(|part| part.canonicalize().is_ok_and(|part| output.path.starts_with(part)));
        if inside || output.among(&parts[0]) {
            let root = root.display();
            bail!(
                "the file belongs to the model store {root}, which is read-only; choose another output"
            );
        }
    }
    Ok(target)
}

/// Identity of a file, to detect hard links: device and inode.
struct Identity {
    path: PathBuf,
    number: Option<(u64, u64)>,
}

impl Identity {
    fn of(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self { number: number(&path), path }
    }

    fn is(&self, other: &Path) -> bool {
        let other = Self::of(other);
        self.path == other.path || (self.number.is_some() && self.number == other.number)
    }

    /// Whether it is a file of this folder, possibly under another name.
    fn among(&self, folder: &Path) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        self.number.is_some() && entries.flatten().any(|entry| self.is(&entry.path()))
    }
}

/// Device and inode of a file that exists.
#[cfg(unix)]
fn number(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The standard library has no file numbers on this platform; only paths are compared.
#[cfg(not(unix))]
fn number(_path: &Path) -> Option<(u64, u64)> {
    None
}
