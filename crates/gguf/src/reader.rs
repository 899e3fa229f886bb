//! Reads the header in chunks of growing size, fetched only when the next item needs them.

use rullama_source::ByteSource;

use crate::error::GgufError;

/// Enough for the header of a model without a vocabulary.
const FIRST_CHUNK: u64 = 256 << 10;
/// Maximum number of bytes read past the end of the header.
const MAX_CHUNK: u64 = 4 << 20;
/// Eight times the header of the largest real vocabulary.
const HEADER_LIMIT: u64 = 128 << 20;

/// A cursor over the start of a source.
pub(crate) struct Reader<'a> {
    source: &'a dyn ByteSource,
    len: u64,
    /// Bytes that were read; the first `used` of them are consumed.
    buffer: Vec<u8>,
    used: usize,
    /// Offset of `buffer` in the source.
    start: u64,
    next_chunk: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a dyn ByteSource) -> Self {
        let buffer = Vec::new();
        Self { source, len: source.len(), buffer, used: 0, start: 0, next_chunk: FIRST_CHUNK }
    }

    /// Number of bytes of the source.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Offset of the next byte in the source.
    pub(crate) fn at(&self) -> u64 {
        self.start + self.used as u64
    }

    /// Number of bytes after this point.
    pub(crate) fn left(&self) -> u64 {
        self.len - self.at()
    }

    /// The buffered bytes.
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Consumes `count` buffered bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.buffered().len(), "only buffered bytes can be consumed");
        self.used += count;
    }

    /// Refuses items that do not fit in the file or the header limit, before they are read or allocated.
    pub(crate) fn check(&self, needed: u64) -> Result<(), GgufError> {
        let at = self.at();
        if needed > self.left() {
            return Err(GgufError::Truncated { at, needed, len: self.len });
        }
        // No overflow: the sum is within the source.
        let end = at + needed;
        if end > HEADER_LIMIT {
            return Err(GgufError::HeaderTooLarge { end, limit: HEADER_LIMIT });
        }
        Ok(())
    }

    /// Buffers at least `needed` bytes.
    pub(crate) async fn require(&mut self, needed: u64) -> Result<(), GgufError> {
        if self.buffered().len() as u64 >= needed {
            return Ok(());
        }
        self.check(needed)?;
        self.buffer.drain(..self.used);
        self.start += self.used as u64;
        self.used = 0;
        while (self.buffer.len() as u64) < needed {
            self.fetch().await?;
        }
        Ok(())
    }

    async fn fetch(&mut self) -> Result<(), GgufError> {
        let at = self.start + self.buffer.len() as u64;
        let end = at.saturating_add(self.next_chunk).min(self.len);
        let chunk = self.source.read(at..end).await?;
        let (requested, got) = (end - at, chunk.len() as u64);
        if got != requested {
            return Err(GgufError::ShortRead { at, requested, got });
        }
        self.buffer.extend_from_slice(&chunk);
        self.next_chunk = (self.next_chunk * 2).min(MAX_CHUNK);
        Ok(())
    }

    /// The next `N` bytes.
    pub(crate) async fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        self.require(N as u64).await?;
        let bytes = *self.buffered().first_chunk().expect("N bytes are buffered");
        self.advance(N);
        Ok(bytes)
    }

    pub(crate) async fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.bytes().await?))
    }

    pub(crate) async fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.bytes().await?))
    }

    /// The next `length` bytes, the rest of a string whose length field started at `at`.
    pub(crate) async fn string(&mut self, at: u64, length: u64) -> Result<Vec<u8>, GgufError> {
        if length > self.left() {
            return Err(GgufError::StringPastEnd { at, length, len: self.len });
        }
        self.require(length).await?;
        let length = usize::try_from(length).expect("`length` bytes are buffered");
        let string = self.buffered()[..length].to_vec();
        self.advance(length);
        Ok(string)
    }
}
