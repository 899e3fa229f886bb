//! One request: redirects and the bytes of the response.

use std::{cell::Cell, io::Read, ops::Range};

use ureq::{
    Agent, Body,
    http::{Uri, header},
};

use super::{HttpOptions, failure::Failure, redirect};
use crate::SourceError;

/// Bytes read at once, so that memory grows with the bytes received instead of the length announced.
const STEP: usize = 64 * 1024;

pub(super) type Response = ureq::http::Response<Body>;

#[derive(Debug)]
pub(super) struct Client {
    pub(super) name: String,
    pub(super) options: HttpOptions,
    pub(super) requests: Cell<u64>,
    pub(super) bytes_fetched: Cell<u64>,
    agent: Agent,
}

impl Client {
    pub(super) fn new(name: String, options: HttpOptions) -> Self {
        let agent = Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            // Followed in `request`: the library would read the whole body of each redirect.
            .max_redirects(0)
            .user_agent(concat!("rullama/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(options.stall))
            .timeout_recv_response(Some(options.stall))
            .timeout_per_read(Some(options.stall))
            .timeout_per_write(Some(options.stall))
            .build()
            .new_agent();
        Self { name, options, requests: Cell::new(0), bytes_fetched: Cell::new(0), agent }
    }

    /// Requests `range` on the condition (`If-Range`) that the file still has this `tag`. Returns the first response
    /// that is not a redirect, and its URL.
    pub(super) fn request(
        &self,
        from: &Uri,
        range: &Range<u64>,
        tag: Option<&str>,
    ) -> Result<(Response, Uri), Failure> {
        let mut resolved = from.clone();
        for _ in 0..=self.options.redirects {
            let response = self.send(&resolved, range, tag)?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok((response, resolved));
            }
            let location = response.headers().get(header::LOCATION);
            let location = location.and_then(|l| l.to_str().ok()).unwrap_or_default();
            let Some(next) = redirect::follow(&resolved, location) else {
                let (name, location) = (self.name.clone(), location.to_owned());
                return Err(SourceError::BadRedirect { name, location }.into());
            };
            resolved = next;
        }
        let (name, limit) = (self.name.clone(), self.options.redirects);
        Err(SourceError::TooManyRedirects { name, limit }.into())
    }

    fn send(
        &self,
        resolved: &Uri,
        range: &Range<u64>,
        tag: Option<&str>,
    ) -> Result<Response, Failure> {
        self.requests.set(self.requests.get() + 1);
        let mut request = self
            .agent
            .get(resolved)
            .header(header::RANGE, format!("bytes={}-{}", range.start, range.end - 1))
            .header(header::ACCEPT_ENCODING, "identity");
        if let Some(tag) = tag {
            request = request.header(header::IF_RANGE, tag);
        }
        request.call().map_err(|e| Failure::before_response(&self.name, e))
    }

    /// Appends the `expected` bytes of a response to `bytes`; bytes received before a failure are kept.
    pub(super) fn receive(
        &self,
        response: Response,
        expected: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let mut body = response.into_body().into_reader();
        let end = bytes.len() + expected;
        while bytes.len() < end {
            let old = bytes.len();
            let step = STEP.min(end - old);
            // Doubles the capacity, up to the length requested.
            let additional = old.max(step).min(end - old);
            if bytes.capacity() - old < step && bytes.try_reserve_exact(additional).is_err() {
                let (name, len) = (self.name.clone(), end as u64);
                return Err(SourceError::TooLarge { name, len }.into());
            }
            bytes.resize(old + step, 0);
            let received = body.read(&mut bytes[old..]);
            bytes.truncate(old + received.as_ref().copied().unwrap_or(0));
            self.count(bytes.len() - old);
            match received {
                Ok(0) => return Err(Failure::ConnectionLost),
                Ok(_) => {}
                Err(e) => return Err(Failure::within_body(&self.name, e)),
            }
        }
        // Reading to the end releases the connection for the next request and detects a body that is too long.
        match body.read(&mut [0; 1]) {
            Ok(0) | Err(_) => Ok(()),
            Ok(more) => {
                self.count(more);
                let (name, expected) = (self.name.clone(), expected as u64);
                Err(SourceError::TooManyBytes { name, expected }.into())
            }
        }
    }

    fn count(&self, bytes: usize) {
        self.bytes_fetched.set(self.bytes_fetched.get() + bytes as u64);
    }
}
