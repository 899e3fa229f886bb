//! The header as it arrives: pieces of growing size, fetched only when the next item needs them.

use rullama_source::ByteSource;

use crate::error::GgufError;

/// Enough for the header of a model without a vocabulary.
const FIRST_PIECE: u64 = 256 << 10;
/// The most that may be read past the end of the header.
const LARGEST_PIECE: u64 = 4 << 20;
/// Eight times the header of the largest real vocabulary.
const HEADER_LIMIT: u64 = 128 << 20;

/// A cursor over the start of a source.
pub(crate) struct Reader<'a> {
    source: &'a dyn ByteSource,
    len: u64,
    /// Bytes that were read and are still wanted; the first `used` of them are done with.
    buffer: Vec<u8>,
    used: usize,
    /// Where in the source `buffer` starts.
    start: u64,
    next_piece: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a dyn ByteSource) -> Self {
        let buffer = Vec::new();
        Self { source, len: source.len(), buffer, used: 0, start: 0, next_piece: FIRST_PIECE }
    }

    /// Number of bytes of the source.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Where in the source the next byte is.
    pub(crate) fn at(&self) -> u64 {
        self.start + self.used as u64
    }

    /// How many bytes come after this point.
    pub(crate) fn left(&self) -> u64 {
        self.len - self.at()
    }

    /// The bytes that are here already.
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Goes past `count` of the buffered bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.buffered().len(), "only buffered bytes can be passed");
        self.used += count;
    }

    /// Refuses what no honest header would ask for, before anything is read or allocated.
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

    /// Makes sure that `needed` bytes are buffered.
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
        let end = at.saturating_add(self.next_piece).min(self.len);
        let piece = self.source.read(at..end).await?;
        let (asked, got) = (end - at, piece.len() as u64);
        if got != asked {
            return Err(GgufError::ShortRead { at, asked, got });
        }
        self.buffer.extend_from_slice(&piece);
        self.next_piece = (self.next_piece * 2).min(LARGEST_PIECE);
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
        let length = usize::try_from(length).expect("as many bytes are buffered");
        let string = self.buffered()[..length].to_vec();
        self.advance(length);
        Ok(string)
    }
}
