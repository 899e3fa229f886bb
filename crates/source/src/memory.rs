//! Bytes we already have.

use std::ops::Range;

use bytes::Bytes;

use crate::{ByteSource, Local, SourceError, error::checked_range};

/// A source over bytes in memory.
#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    bytes: Bytes,
}

impl MemorySource {
    /// A source called `name` in messages.
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

impl ByteSource for MemorySource {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>> {
        let answer = checked_range(&self.name, range, self.len()).map(|r| self.bytes.slice(r));
        Box::pin(std::future::ready(answer))
    }

    fn name(&self) -> &str {
        &self.name
    }
}
