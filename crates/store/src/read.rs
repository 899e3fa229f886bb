//! Reading small untrusted files.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use crate::StoreError;

/// The bytes of a regular file of at most `max` bytes.
pub(crate) fn read_small(path: &Path, max: u64) -> Result<Vec<u8>, StoreError> {
    let too_large = |len| StoreError::TooLarge { path: path.into(), len, max };
    let known = regular_file_len(path)?;
    if known > max {
        return Err(too_large(known));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| unreadable(path, e))?;
    // The file may have grown since its length was read.
    file.take(max + 1).read_to_end(&mut bytes).map_err(|e| unreadable(path, e))?;
    let len = bytes.len() as u64;
    if len > max { Err(too_large(len)) } else { Ok(bytes) }
}

/// The length of a regular file; links are followed. Called before opening, because opening a pipe would block.
pub(crate) fn regular_file_len(path: &Path) -> Result<u64, StoreError> {
    let metadata = fs::metadata(path).map_err(|e| unreadable(path, e))?;
    if !metadata.is_file() {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(unreadable(path, error));
    }
    Ok(metadata.len())
}

pub(crate) fn unreadable(path: &Path, source: io::Error) -> StoreError {
    StoreError::Unreadable { path: path.into(), source }
}
