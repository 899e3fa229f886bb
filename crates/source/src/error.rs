//! Errors of reading bytes.

use std::{io, ops::Range, time::Duration};

/// Why bytes could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The range is reversed or reaches past the end of the source.
    #[error("{name}: bytes {start}..{end} are not inside its {len} bytes")]
    OutOfRange {
        /// The source.
        name: String,
        /// First byte requested.
        start: u64,
        /// One past the last byte requested.
        end: u64,
        /// Length of the source.
        len: u64,
    },

    /// One read of more bytes than this machine can address or allocate.
    #[error("{name}: {len} bytes at once do not fit in memory")]
    TooLarge {
        /// The source.
        name: String,
        /// How many bytes.
        len: u64,
    },

    /// The source has no bytes.
    #[error("{name} is empty; if it was downloaded, download it again")]
    Empty {
        /// The source.
        name: String,
    },

    /// No such file.
    #[error("{name}: no such file; check the path")]
    Missing {
        /// The path.
        name: String,
    },

    /// A folder, a device or a pipe where a file was expected.
    #[error("{name} is not a regular file; give the path of a file")]
    NotAFile {
        /// The path.
        name: String,
    },

    /// The system does not let us read the file.
    #[error("{name}: permission denied; make the file readable for this user")]
    Denied {
        /// The path.
        name: String,
    },

    /// The system failed in a way that has no case of its own.
    #[error("cannot read {name}: {source}")]
    Io {
        /// The path.
        name: String,
        /// The system's error.
        source: io::Error,
    },

    /// The source changed since it was opened.
    #[error("{name} changed while it was being read ({change}); open it again")]
    Changed {
        /// The source.
        name: String,
        /// What is different.
        change: Change,
    },

    /// Not an http or https URL.
    #[error("{name} is not an http:// or https:// URL")]
    BadUrl {
        /// The URL.
        name: String,
    },

    /// The server sends whole files only.
    #[error(
        "{name}: the server does not support range requests; download the file and open it from disk"
    )]
    NoRanges {
        /// The URL.
        name: String,
    },

    /// The server sent an HTML page.
    #[error("{name}: the server sent a web page instead of a file; use the direct download URL")]
    WebPage {
        /// The URL.
        name: String,
    },

    /// The server refused or failed.
    #[error("{name}: the server returned status {status} ({})", status_advice(*.status))]
    Status {
        /// The URL.
        name: String,
        /// HTTP status code.
        status: u16,
    },

    /// The `Content-Range` of the response is not the range requested.
    #[error(
        "{name}: requested bytes {start}..{end}, but the server's Content-Range is {}; download the file and open it from disk",
        .content_range.as_deref().unwrap_or("missing")
    )]
    WrongRange {
        /// The URL.
        name: String,
        /// First byte requested.
        start: u64,
        /// One past the last byte requested.
        end: u64,
        /// The header, if the response has one.
        content_range: Option<String>,
    },

    /// The body is longer than announced.
    #[error(
        "{name}: the server sent more than the {expected} bytes it announced; download the file and open it from disk"
    )]
    TooManyBytes {
        /// The URL.
        name: String,
        /// Length of the announced range.
        expected: u64,
    },

    /// The response is compressed although `identity` was requested.
    #[error(
        "{name}: the server compressed the response ({encoding}) although rullama did not accept compression; download the file and open it from disk"
    )]
    Encoded {
        /// The URL.
        name: String,
        /// The `Content-Encoding` header.
        encoding: String,
    },

    /// More redirects than allowed.
    #[error("{name}: more than {limit} redirects; check the URL")]
    TooManyRedirects {
        /// The URL requested first.
        name: String,
        /// How many are followed.
        limit: u32,
    },

    /// A redirect without a target, to another protocol, or from https to http.
    #[error(
        "{name}: the server redirects to {location:?}, which is not an allowed URL; use the direct download URL"
    )]
    BadRedirect {
        /// The URL requested first.
        name: String,
        /// The `Location` header.
        location: String,
    },

    /// The connection was closed early in every attempt.
    #[error(
        "{name}: connection lost after {received} of {expected} bytes and {attempts} attempts; check the network and try again"
    )]
    ConnectionLost {
        /// The URL.
        name: String,
        /// Bytes received.
        received: u64,
        /// Bytes requested.
        expected: u64,
        /// Attempts made.
        attempts: u32,
    },

    /// No data within the timeout in every attempt.
    #[error(
        "{name}: no data for {timeout:?} after {attempts} attempts; check the network and try again"
    )]
    Stalled {
        /// The URL.
        name: String,
        /// How long each attempt waited.
        timeout: Duration,
        /// Attempts made.
        attempts: u32,
    },

    /// No connection to the server.
    #[error("{name}: cannot connect after {attempts} attempts: {source}")]
    Unreachable {
        /// The URL.
        name: String,
        /// Attempts made.
        attempts: u32,
        /// The network error.
        source: io::Error,
    },

    /// The response is not valid HTTP, or TLS failed.
    #[error("{name}: bad response from the server: {source}")]
    BadResponse {
        /// The URL.
        name: String,
        /// The error.
        source: io::Error,
    },
}

/// How a source differs from when it was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Change {
    /// Its length.
    #[error("{was} bytes before, {now} now")]
    Length {
        /// When it was opened.
        was: u64,
        /// Later.
        now: u64,
    },
    /// The server's tag for this version of the file.
    #[error("its ETag was {was}, now {now}")]
    ETag {
        /// When it was opened.
        was: String,
        /// Later.
        now: String,
    },
    /// The date of its last change.
    #[error("last modified {was} before, {now} now")]
    LastModified {
        /// When it was opened.
        was: String,
        /// Later.
        now: String,
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

fn status_advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "access denied: the file may need a login, or its terms to be accepted",
        404 | 410 => "not found: check the URL",
        408 | 429 => "too busy: try again later",
        416 => "no such byte range: the file may have changed",
        500..=599 => "server error: try again later",
        _ => "unexpected status",
    }
}
