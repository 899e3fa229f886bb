//! Checks a file against its digest.

use std::{fs::File, io::Read, ops::ControlFlow, path::Path};

use sha2::{Digest as _, Sha256};

use crate::{
    Digest, StoreError,
    read::{regular_file_len, unreadable},
};

/// Bytes hashed between two progress reports.
const CHUNK: usize = 1 << 20;

/// Hashes the file at `path` and compares it with `digest`.
///
/// `on_progress` gets the bytes done and the bytes in total, before the first chunk and after each; it may cancel.
pub fn verify(
    path: &Path,
    digest: &Digest,
    on_progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let actual = digest_of(path, on_progress)?;
    if actual == *digest {
        Ok(())
    } else {
        Err(StoreError::HashMismatch { path: path.into(), expected: digest.clone(), actual })
    }
}

/// Hashes the file at `path`; `on_progress` as in [`verify`].
pub fn digest_of(
    path: &Path,
    on_progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Digest, StoreError> {
    let total = regular_file_len(path)?;
    let mut file = File::open(path).map_err(|e| unreadable(path, e))?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    loop {
        if on_progress(done, total).is_break() {
            return Err(StoreError::Cancelled { path: path.into() });
        }
        let len = fill(&mut file, &mut chunk).map_err(|e| unreadable(path, e))?;
        if len == 0 {
            break;
        }
        hasher.update(&chunk[..len]);
        done += len as u64;
    }
    Ok(Digest::finish(hasher))
}

/// Reads until `chunk` is full or the file ends, so that progress is reported at even distances.
fn fill(file: &mut File, chunk: &mut [u8]) -> std::io::Result<usize> {
    let mut len = 0;
    while len < chunk.len() {
        match file.read(&mut chunk[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(len)
}
