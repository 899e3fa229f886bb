//! The files of an unfinished download: the same as Ollama's, so that each program can resume the other's downloads.
//!
//! `blobs/sha256-HEX-partial` holds the data at its final length; `…-partial-N` holds the state of part N.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use rullama_store::Digest;
use serde::{Deserialize, Serialize};

use crate::{PartSize, PullError, error::io_error};

/// Maximum number of parts; more than Ollama writes.
const MAX_PARTS: usize = 4096;

/// A part of a blob, as its state file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Part {
    pub(crate) n: usize,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) completed: u64,
}

/// The paths of a blob and its unfinished download.
#[derive(Debug, Clone)]
pub(crate) struct BlobPaths {
    folder: PathBuf,
    name: String,
}

impl BlobPaths {
    /// The files of `digest` in the store at `root`.
    pub(crate) fn new(root: &Path, digest: &Digest) -> Self {
        let name = format!("sha256-{}", digest.hex().to_ascii_lowercase());
        Self { folder: root.join("blobs"), name }
    }

    /// The folder of all blobs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The finished blob.
    pub(crate) fn blob(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The data file of the unfinished download.
    pub(crate) fn partial(&self) -> PathBuf {
        self.folder.join(format!("{}-partial", self.name))
    }

    fn state(&self, n: usize) -> PathBuf {
        self.folder.join(format!("{}-partial-{n}", self.name))
    }

    /// Whether the finished blob exists with this length.
    pub(crate) fn is_complete(&self, size: u64) -> bool {
        fs::metadata(self.blob()).is_ok_and(|found| found.is_file() && found.len() == size)
    }

    /// The indices of all state files.
    fn numbers(&self) -> io::Result<Vec<usize>> {
        let prefix = format!("{}-partial-", self.name);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let number: Option<usize> =
                name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The parts of an unfinished download of `total` bytes, if the state files are consistent.
    pub(crate) fn read_parts(&self, total: u64) -> Option<Vec<Part>> {
        let numbers = self.numbers().ok().filter(|numbers| numbers.len() <= MAX_PARTS)?;
        let read = |n: usize| {
            let path = self.state(n);
            // A state file is one line; a longer file is not a state.
            let short = fs::metadata(&path).ok()?.len() <= 4096;
            let bytes = short.then(|| fs::read(&path).ok()).flatten()?;
            serde_json::from_slice::<Part>(&bytes).ok().filter(|part| part.n == n)
        };
        let mut parts = numbers.into_iter().map(read).collect::<Option<Vec<Part>>>()?;
        parts.sort_by_key(|part| part.offset);
        covers(&parts, total).then_some(parts)
    }

    /// Records the state of `part`. Written to a temporary file and renamed, so that Ollama never reads a partial state.
    pub(crate) fn write_part(&self, part: &Part) -> Result<(), PullError> {
        let path = self.state(part.n);
        let aside = self.folder.join(format!(".{}-state-{}", self.name, part.n));
        let mut bytes = serde_json::to_vec(part).unwrap_or_default();
        bytes.push(b'\n');
        fs::write(&aside, bytes).map_err(|e| io_error("write", &aside, e))?;
        fs::rename(&aside, &path).map_err(|e| io_error("write", &path, e))
    }

    /// Deletes all state files.
    pub(crate) fn remove_states(&self) -> Result<(), PullError> {
        let numbers = self.numbers().map_err(|e| io_error("read", &self.folder, e))?;
        // The first one last: its existence shows that there are leftovers.
        for n in numbers.into_iter().rev() {
            remove(&self.state(n))?;
            remove(&self.folder.join(format!(".{}-state-{n}", self.name)))?;
        }
        Ok(())
    }

    /// Deletes state files left by a kill between the rename of the data and their deletion.
    pub(crate) fn remove_leftovers(&self) {
        if !self.partial().exists() && self.state(0).exists() {
            // Leftovers are harmless; the next pull tries again.
            let _ = self.remove_states();
        }
    }

    /// Discards the download. State files are deleted first: without data they would claim missing bytes.
    pub(crate) fn discard(&self) -> Result<(), PullError> {
        self.remove_states()?;
        remove(&self.partial())
    }
}

/// Deletes a file that may not exist.
pub(crate) fn remove(path: &Path) -> Result<(), PullError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(io_error("delete", path, e)),
        _ => Ok(()),
    }
}

/// Splits a blob into parts: 16, unless they would be too short or too long.
pub(crate) fn plan(total: u64, limits: PartSize) -> Vec<Part> {
    let size = (total / 16).max(limits.min).min(limits.max).max(1);
    let mut parts = Vec::new();
    let mut offset = 0;
    while offset < total {
        let size = size.min(total - offset);
        parts.push(Part { n: parts.len(), offset, size, completed: 0 });
        offset += size;
    }
    parts
}

/// Whether `parts`, sorted by offset, cover the blob without gaps or overlaps.
fn covers(parts: &[Part], total: u64) -> bool {
    let mut end = 0;
    for part in parts {
        if part.offset != end || part.size == 0 || part.completed > part.size {
            return false;
        }
        let Some(next) = end.checked_add(part.size) else { return false };
        end = next;
    }
    end == total && !parts.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rullama_store::Digest;

    use super::{BlobPaths, Part, covers, plan};
    use crate::{PartSize, PullOptions};

    #[test]
    fn parts_have_ollamas_sizes() {
        let limits = PullOptions::default().part_size;
        for (total, count, first) in [
            (1, 1, 1),
            (100_000_000, 1, 100_000_000),
            (100_000_001, 2, 100_000_000),
            (1_600_000_000, 16, 100_000_000),
            (7_162_394_016, 16, 447_649_626),
            (40_000_000_000, 40, 1_000_000_000),
        ] {
            let parts = plan(total, limits);
            assert_eq!((parts.len(), parts[0].size), (count, first), "{total}");
        }
    }

    #[test]
    fn states_have_ollamas_format() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("blobs")).unwrap();
        let digest = Digest::of(b"x");
        let paths = BlobPaths::new(folder.path(), &digest);
        let part = |n, offset| Part { n, offset, size: 100_000_000, completed: 7 };
        paths.write_part(&part(0, 0)).unwrap();
        let path = folder.path().join(format!("blobs/sha256-{}-partial-0", digest.hex()));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"N\":0,\"Offset\":0,\"Size\":100000000,\"Completed\":7}\n");

        assert_eq!(paths.read_parts(200_000_000), None, "the second part is missing");
        paths.write_part(&part(1, 100_000_000)).unwrap();
        assert_eq!(paths.read_parts(200_000_000).unwrap(), [part(0, 0), part(1, 100_000_000)]);
        assert_eq!(paths.read_parts(200_000_001), None, "of another file");
        for broken in ["", "{", "{\"N\":0}", "null"] {
            std::fs::write(&path, broken).unwrap();
            assert_eq!(paths.read_parts(200_000_000), None, "{broken:?}");
        }
        paths.remove_states().unwrap();
        assert_eq!(std::fs::read_dir(folder.path().join("blobs")).unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn plans_cover_every_byte_once(total in 1u64..1 << 40, min in 1u64..1 << 30, more in 0u64..1 << 32) {
            let limits = PartSize { min: min.max(total >> 11), max: min.max(total >> 11) + more };
            let parts = plan(total, limits);
            prop_assert!(covers(&parts, total));
            prop_assert!(parts.iter().all(|part| part.size <= limits.max));
        }
    }
}
