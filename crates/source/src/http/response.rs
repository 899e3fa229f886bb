//! Response headers: which bytes the body holds, and of which version of the file.

use std::ops::Range;

use ureq::http::{HeaderMap, HeaderName, header};

use super::{client::Response, failure::Failure};
use crate::{SourceError, error::Change};

/// The part of the file that a response holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    len: usize,
    /// Length of the whole file.
    pub(super) total: u64,
}

impl Part {
    /// The part that `response` announces, if it starts at the start of `range`.
    pub(super) fn of(name: &str, response: &Response, range: &Range<u64>) -> Result<Self, Failure> {
        let headers = response.headers();
        let content_range = text(headers, header::CONTENT_RANGE);
        match response.status().as_u16() {
            206 => {
                refuse_encoded(name, headers)?;
                let wrong = || SourceError::WrongRange {
                    name: name.into(),
                    start: range.start,
                    end: range.end,
                    content_range: content_range.map(str::to_owned),
                };
                Ok(content_range.and_then(|header| parse(header, range)).ok_or_else(wrong)?)
            }
            200 => Err(whole_file(name, headers).into()),
            416 if content_range == Some("bytes */0") => {
                Err(SourceError::Empty { name: name.into() }.into())
            }
            status @ (408 | 429 | 500..=599) => Err(Failure::Busy(status)),
            status => Err(SourceError::Status { name: name.into(), status }.into()),
        }
    }

    /// Bytes of the body: at most as many as requested.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// The version of a file according to the server.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) total: u64,
    etag: Option<String>,
    last_modified: Option<String>,
}

impl Version {
    pub(super) fn of(response: &Response, total: u64) -> Self {
        let owned = |header| text(response.headers(), header).map(str::to_owned);
        Self { total, etag: owned(header::ETAG), last_modified: owned(header::LAST_MODIFIED) }
    }

    /// The ETag if it is strong (byte-exact). `Last-Modified` is not used for `If-Range`: servers may treat a recent
    /// date as weak and send the whole file.
    pub(super) fn strong_tag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|tag| tag.starts_with('"'))
    }

    /// Refuses responses of another version. Missing headers are ignored.
    pub(super) fn compare(&self, name: &str, response: &Response) -> Result<(), SourceError> {
        let headers = response.headers();
        match response.status().as_u16() {
            200 if is_web_page(headers) => return Ok(()), // its headers are not those of the file
            200 | 206 => {}
            416 => return self.compare_unsatisfied(name, headers),
            _ => return Ok(()),
        }
        let pair = |was: &Option<String>, now: HeaderName| {
            Some((was.clone()?, text(headers, now)?.to_owned()))
        };
        let etags = pair(&self.etag, header::ETAG).filter(|(was, now)| opaque(was) != opaque(now));
        let dates =
            pair(&self.last_modified, header::LAST_MODIFIED).filter(|(was, now)| was != now);
        let change = etags
            .map(|(was, now)| Change::ETag { was, now })
            .or(dates.map(|(was, now)| Change::LastModified { was, now }));
        if let Some(change) = change {
            return Err(SourceError::Changed { name: name.into(), change });
        }
        match text(headers, header::CONTENT_LENGTH).and_then(number) {
            Some(whole) if response.status() == 200 => self.compare_total(name, whole),
            _ => Ok(()),
        }
    }

    pub(super) fn compare_total(&self, name: &str, now: u64) -> Result<(), SourceError> {
        if now == self.total {
            return Ok(());
        }
        let change = Change::Length { was: self.total, now };
        Err(SourceError::Changed { name: name.into(), change })
    }

    /// Status 416 carries the new length of a file that became shorter.
    fn compare_unsatisfied(&self, name: &str, headers: &HeaderMap) -> Result<(), SourceError> {
        let now = text(headers, header::CONTENT_RANGE)
            .and_then(|value| value.strip_prefix("bytes */"))
            .and_then(number);
        now.map_or(Ok(()), |now| self.compare_total(name, now))
    }
}

/// Parses `bytes 0-99/1234`; it must start at the start of `range` and end inside `range` and the file.
fn parse(header: &str, range: &Range<u64>) -> Option<Part> {
    let (unit, rest) = header.trim().split_once(' ')?;
    let (first_last, total) = rest.trim().split_once('/')?;
    let (first, last) = first_last.split_once('-')?;
    let (first, last, total) = (number(first)?, number(last)?, number(total)?);
    let fits = first == range.start && first <= last && last < range.end && last < total;
    if !(unit.eq_ignore_ascii_case("bytes") && fits) {
        return None;
    }
    let len = usize::try_from(last - first).ok()?.checked_add(1)?;
    Some(Part { len, total })
}

/// Digits only: `parse` alone would also accept a sign.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn refuse_encoded(name: &str, headers: &HeaderMap) -> Result<(), SourceError> {
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let encoding = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            return Err(SourceError::Encoded { name: name.into(), encoding });
        }
    }
    Ok(())
}

/// The error for status 200, with which the server sends the whole file.
fn whole_file(name: &str, headers: &HeaderMap) -> SourceError {
    let name = name.to_owned();
    if is_web_page(headers) {
        SourceError::WebPage { name }
    } else if text(headers, header::CONTENT_LENGTH).and_then(number) == Some(0) {
        SourceError::Empty { name }
    } else {
        SourceError::NoRanges { name }
    }
}

fn is_web_page(headers: &HeaderMap) -> bool {
    let kind = text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
}

/// An ETag without the prefix `W/`, which proxies may add.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::{Part, parse};

    #[test]
    fn content_ranges() {
        let fine = |header, len, total| {
            assert_eq!(parse(header, &(10..20)), Some(Part { len, total }), "{header}");
        };
        fine("bytes 10-19/100", 10, 100);
        fine("Bytes 10-19/100", 10, 100);
        fine("bytes 10-19/20", 10, 20);
        fine("bytes 10-14/15", 5, 15);
        fine("bytes 10-10/7000000000", 1, 7_000_000_000);

        for header in [
            "",
            "bytes",
            "bytes 10-19",
            "bytes 10-19/*",
            "bytes */100",
            "bytes 10/100",
            "bytes -19/100",
            "bytes 10-/100",
            "bytes +10-19/100",
            "bytes 10-+19/100",
            "bytes 9-19/100",
            "bytes 11-19/100",
            "bytes 0-9/100",
            "bytes 10-20/100",
            "bytes 10-9/100",
            "bytes 10-19/19",
            "bytes 10-19/99999999999999999999999",
            "items 10-19/100",
            "bytes 10-19/100, bytes 30-39/100",
        ] {
            assert_eq!(parse(header, &(10..20)), None, "{header:?}");
        }
    }
}
