//! A file on disk, mapped into memory: the system reads pages when they are touched, and reads copy nothing.
#![expect(unsafe_code, reason = "memory maps have no safe interface")]

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io,
    ops::Range,
    path::Path,
};

use bytes::Bytes;
use memmap2::Mmap;

use crate::{
    ByteSource, Local, SourceError,
    error::{Change, checked_range},
};

/// A source over a memory-mapped file.
///
/// The file must not change while the source or any bytes read from it are in use. A changed length is an error at the
/// next read; but bytes already returned point into the file, and accessing them after the file was truncated
/// kills the process (SIGBUS).
#[derive(Debug)]
pub struct FileSource {
    name: String,
    file: File,
    bytes: Bytes,
}

impl FileSource {
    /// Maps the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        // Checked before opening, because opening a pipe blocks until the other end opens.
        regular_file_len(&name, fs::metadata(path))?;
        let file = File::open(path).map_err(|e| system_error(&name, e))?;
        let len = regular_file_len(&name, file.metadata())?;
        if len == 0 {
            return Err(SourceError::Empty { name });
        }
        if usize::try_from(len).is_err() {
            return Err(SourceError::TooLarge { name, len });
        }
        // SAFETY: the map is private to this type and only read. The file must not be written or truncated meanwhile;
        // no system can guarantee that, so the type's documentation requires it, and `read` checks the length
        // first, which catches a file that was overwritten in place.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| system_error(&name, e))?;
        Ok(Self { name, file, bytes: Bytes::from_owner(map) })
    }

    fn slice(&self, range: Range<u64>) -> Result<Bytes, SourceError> {
        let was = self.len();
        let range = checked_range(&self.name, range, was)?;
        let now = regular_file_len(&self.name, self.file.metadata())?;
        if now != was {
            let change = Change::Length { was, now };
            return Err(SourceError::Changed { name: self.name.clone(), change });
        }
        Ok(self.bytes.slice(range))
    }
}

impl ByteSource for FileSource {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>> {
        Box::pin(async move { self.slice(range) })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn regular_file_len(name: &str, metadata: io::Result<fs::Metadata>) -> Result<u64, SourceError> {
    let metadata = metadata.map_err(|e| system_error(name, e))?;
    if !metadata.is_file() {
        return Err(SourceError::NotAFile { name: name.into() });
    }
    Ok(metadata.len())
}

fn system_error(name: &str, source: io::Error) -> SourceError {
    let name = name.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => SourceError::Missing { name },
        io::ErrorKind::PermissionDenied => SourceError::Denied { name },
        _ => SourceError::Io { name, source },
    }
}
