//! What can go wrong when bytes are read.

use std::ops::Range;

/// Why bytes could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The range is reversed or reaches past the end of the source.
    #[error("{name}: bytes {start}..{end} are not inside its {len} bytes")]
    OutOfRange {
        /// The source.
        name: String,
        /// First byte asked for.
        start: u64,
        /// One past the last byte asked for.
        end: u64,
        /// Length of the source.
        len: u64,
    },
}

/// `range` as `usize` offsets into memory of `len` bytes.
pub(crate) fn checked_range(
    name: &str,
    range: Range<u64>,
    len: u64,
) -> Result<Range<usize>, SourceError> {
    let out =
        || SourceError::OutOfRange { name: name.into(), start: range.start, end: range.end, len };
    if range.start > range.end || range.end > len {
        return Err(out());
    }
    let start = usize::try_from(range.start).map_err(|_| out())?;
    let end = usize::try_from(range.end).map_err(|_| out())?;
    Ok(start..end)
}
