//! Bytes in memory.

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
        let bytes = checked_range(&self.name, range, self.len()).map(|r| self.bytes.slice(r));
        Box::pin(std::future::ready(bytes))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use pollster::block_on;

    use super::MemorySource;
    use crate::{ByteSource, SourceError};

    #[test]
    fn reads_are_exact_and_ranges_outside_are_refused() {
        let source = MemorySource::new("memory", vec![1, 2, 3]);
        assert_eq!((source.name(), source.len(), source.is_empty()), ("memory", 3, false));
        assert_eq!(&block_on(source.read(1..3)).unwrap()[..], [2, 3]);
        assert!(block_on(source.read(3..3)).unwrap().is_empty());
        let reversed = Range { start: 2, end: 1 };
        // The last one would fit if it were truncated to 32 bits.
        for range in [0..4, 4..4, reversed, 0..u64::MAX, (1 << 32)..(1 << 32) + 1] {
            let error = block_on(source.read(range)).unwrap_err();
            assert!(matches!(error, SourceError::OutOfRange { len: 3, .. }), "{error}");
        }
    }
}
