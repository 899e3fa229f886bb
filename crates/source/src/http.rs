//! A file at a URL, read by HTTP range requests: only the requested ranges are transferred.

mod client;
mod failure;
mod redirect;
mod response;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, ops::Range, time::Duration};

use bytes::Bytes;
use ureq::http::Uri;

pub use self::redirect::{follow, web_address};
use self::{
    client::Client,
    failure::{Failure, retry},
    response::{Part, Version},
};
use crate::{ByteSource, Local, SourceError};

/// Bytes requested when a source is opened: enough for a small GGUF header.
const HEAD: u64 = 64 * 1024;

/// Retries, timeouts and redirects of an [`HttpSource`].
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Attempts per read; at least one.
    pub attempts: u32,
    /// Pause before the second attempt; it doubles before each further one.
    pub backoff: Duration,
    /// How long to wait without receiving data.
    pub stall: Duration,
    /// Redirects to follow.
    pub redirects: u32,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            attempts: 4,
            backoff: Duration::from_millis(250),
            stall: Duration::from_secs(30),
            redirects: 10,
        }
    }
}

/// A source over HTTP range requests.
///
/// It never downloads a whole file by accident: a server without range requests is an error, and so is a file that
/// changes between two reads. Interrupted reads are resumed. Proxy settings of the environment are not used.
#[derive(Debug)]
pub struct HttpSource {
    client: Client,
    origin: Uri,
    /// The URL after redirects. It may expire (signed URLs); then the origin is requested again.
    resolved: RefCell<Uri>,
    version: Version,
    head: Bytes,
}

impl HttpSource {
    /// Requests the first bytes of `url`, and thereby its length and version.
    pub fn open(url: &str, options: HttpOptions) -> Result<Self, SourceError> {
        let name = redirect::without_login(url);
        let Some(origin) = redirect::web_address(url) else {
            return Err(SourceError::BadUrl { name });
        };
        let client = Client::new(name, options);
        let first = retry(&client.options, || {
            let (response, resolved) = client.request(&origin, &(0..HEAD), None)?;
            let part = Part::of(&client.name, &response, &(0..HEAD))?;
            Ok((response, resolved, part))
        });
        let (response, resolved, part) =
            first.map_err(|(failure, attempts)| failure.into_error(&client, attempts, 0, HEAD))?;

        let version = Version::of(&response, part.total);
        let mut head = Vec::new();
        match client.receive(response, part.len(), &mut head) {
            // If the head is incomplete, the next read requests the rest.
            Ok(()) | Err(Failure::ConnectionLost | Failure::Stalled) => {}
            Err(failure) => return Err(failure.into_error(&client, 1, 0, part.len() as u64)),
        }
        Ok(Self { client, origin, resolved: RefCell::new(resolved), version, head: head.into() })
    }

    /// Content bytes received so far, including bytes received twice.
    pub fn bytes_fetched(&self) -> u64 {
        self.client.bytes_fetched.get()
    }

    /// Requests sent so far, including redirects and retries.
    pub fn requests(&self) -> u64 {
        self.client.requests.get()
    }

    /// The URL after all redirects.
    pub fn resolved_url(&self) -> String {
        redirect::without_login(&self.resolved.borrow().to_string())
    }

    fn fetch(&self, range: &Range<u64>) -> Result<Bytes, SourceError> {
        let name = &self.client.name;
        let (start, end, len) = (range.start, range.end, self.len());
        if start > end || end > len {
            return Err(SourceError::OutOfRange { name: name.clone(), start, end, len });
        }
        let expected = end - start;
        let too_large = |_| SourceError::TooLarge { name: name.clone(), len: expected };
        let size = usize::try_from(expected).map_err(too_large)?;
        let known = self.head_from(start, size);
        if known.len() == size {
            return Ok(known);
        }
        let mut bytes = Vec::from(known);
        retry(&self.client.options, || self.continue_to(end, size, &mut bytes)).map_err(
            |(failure, attempts)| {
                failure.into_error(&self.client, attempts, bytes.len() as u64, expected)
            },
        )?;
        Ok(bytes.into())
    }

    /// Up to `size` bytes at `start` of the head received when the source was opened.
    fn head_from(&self, start: u64, size: usize) -> Bytes {
        match usize::try_from(start) {
            Ok(start) if start < self.head.len() => {
                self.head.slice(start..self.head.len().min(start.saturating_add(size)))
            }
            _ => Bytes::new(),
        }
    }

    /// One request for the bytes still missing of the `size` bytes up to `end`.
    fn continue_to(&self, end: u64, size: usize, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let missing = end - (size - bytes.len()) as u64..end;
        let tag = self.version.strong_tag();
        let resolved = self.resolved.borrow().clone();
        let result =
            match self.request(&resolved, &missing, tag) {
                Err(Failure::Final(SourceError::Status {
                    status: 401 | 403 | 404 | 410, ..
                })) if resolved != self.origin => self.request(&self.origin, &missing, tag),
                result => result,
            };
        let (response, part) = result?;
        self.client.receive(response, part.len(), bytes)?;
        if bytes.len() < size { Err(Failure::ConnectionLost) } else { Ok(()) }
    }

    fn request(
        &self,
        resolved: &Uri,
        range: &Range<u64>,
        tag: Option<&str>,
    ) -> Result<(client::Response, Part), Failure> {
        let (response, resolved) = self.client.request(resolved, range, tag)?;
        self.version.compare(&self.client.name, &response)?;
        let part = Part::of(&self.client.name, &response, range)?;
        self.version.compare_total(&self.client.name, part.total)?;
        self.resolved.replace(resolved);
        Ok((response, part))
    }
}

impl ByteSource for HttpSource {
    fn len(&self) -> u64 {
        self.version.total
    }

    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>> {
        Box::pin(async move { self.fetch(&range) })
    }

    fn name(&self) -> &str {
        &self.client.name
    }
}
