//! Adds blobs to a store.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
};

use rullama_store::Digest;
use sha2::{Digest as _, Sha256};

use super::{TEMPORARY, digest_of, sync_folder, temporary};
use crate::{PullError, error::io_error, parts::BlobPaths};

const PIECE: usize = 256 << 10;

/// Whether adding a blob changed the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is new.
    Created,
    /// It exists already; nothing was read.
    Existing,
}

/// Whether the blob is in the store at `root`.
pub fn has_blob(root: &Path, digest: &Digest) -> bool {
    fs::metadata(BlobPaths::new(root, digest).blob()).is_ok_and(|found| found.is_file())
}

/// Adds the bytes of `reader`, at most `max`, as the blob `digest` to the store at `root`.
///
/// # Errors
/// If the bytes have another digest, exceed `max`, or cannot be read or written. The store is then unchanged.
pub fn add_blob(
    root: &Path,
    digest: &Digest,
    reader: &mut dyn Read,
    max: u64,
) -> Result<Added, PullError> {
    if has_blob(root, digest) {
        return Ok(Added::Existing);
    }
    let paths = BlobPaths::new(root, digest);
    fs::create_dir_all(paths.folder()).map_err(|e| io_error("create", paths.folder(), e))?;
    remove_abandoned(paths.folder());
    let aside = temporary(paths.folder(), "upload");
    let added = write_checked(&aside, digest, reader, max).and_then(|()| {
        let blob = paths.blob();
        fs::rename(&aside, &blob).map_err(|e| io_error("write", &blob, e))
    });
    if added.is_err() {
        let _ = fs::remove_file(&aside);
    }
    added?;
    sync_folder(paths.folder())?;
    Ok(Added::Created)
}

/// Adds a small blob that is in memory.
pub(crate) fn put_blob(root: &Path, bytes: &[u8]) -> Result<(Digest, Added), PullError> {
    let digest = Digest::of(bytes);
    let added = add_blob(root, &digest, &mut &*bytes, bytes.len() as u64)?;
    Ok((digest, added))
}

fn write_checked(
    aside: &Path,
    digest: &Digest,
    reader: &mut dyn Read,
    max: u64,
) -> Result<(), PullError> {
    let failed = |e| io_error("write", aside, e);
    let mut file = File::create_new(aside).map_err(failed)?;
    // While this lock is held, other processes do not treat the file as abandoned.
    let _ = file.try_lock();
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut total: u64 = 0;
    loop {
        let len = match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => len,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(io_error("receive", aside, e)),
        };
        total += len as u64;
        if total > max {
            let problem = format!("the blob has more than {max} bytes");
            return Err(PullError::BadRequest { problem });
        }
        hasher.update(&piece[..len]);
        file.write_all(&piece[..len]).map_err(failed)?;
    }
    let actual = digest_of(hasher);
    if actual != *digest {
        return Err(PullError::BlobMismatch { expected: digest.clone(), actual });
    }
    file.sync_all().map_err(failed)
}

/// Deletes uploads of killed processes, whose locks are gone.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let upload = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY));
        if upload.is_some_and(|rest| rest.starts_with("upload-"))
            && File::options().write(true).open(entry.path()).is_ok_and(|f| f.try_lock().is_ok())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}
