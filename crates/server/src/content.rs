//! A file as an answer: whole or in part, streamed in large pieces, with the headers caches and resumed downloads need.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, stream};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{
    range::{self, Asked},
    refusal::Refusal,
};

/// Two of these are in memory for each download: one being sent, one being read.
const PIECE: u64 = 1 << 20;

/// An open file to be sent.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) file: File,
    pub(crate) len: u64,
    pub(crate) etag: String,
    pub(crate) cache: &'static str,
}

impl Content {
    /// The answer to a request for this file.
    pub(crate) fn answer(self, method: &Method, headers: &HeaderMap) -> Result<Response, Refusal> {
        let etag = HeaderValue::try_from(&self.etag)
            .map_err(|_| Refusal::internal("an ETag has invalid characters"))?;
        let caching = [
            (header::ETAG, etag),
            (header::CACHE_CONTROL, HeaderValue::from_static(self.cache)),
            (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        ];
        if none_match(headers, &self.etag) {
            return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
        }
        let (status, part) = match self.asked(method, headers) {
            Asked::Whole => (StatusCode::OK, 0..self.len),
            Asked::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
            Asked::Unsatisfiable => return Err(unsatisfiable(self.len)),
        };
        let length = part.end - part.start;
        let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
        let mut response = (status, kind, caching).into_response();
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        if status == StatusCode::PARTIAL_CONTENT {
            let place = format!("bytes {}-{}/{}", part.start, part.end - 1, self.len);
            let place = HeaderValue::try_from(place);
            response.headers_mut().extend(place.ok().map(|place| (header::CONTENT_RANGE, place)));
        }
        if method != Method::HEAD && length > 0 {
            *response.body_mut() = Body::from_stream(pieces(self.file, part.start, length));
        }
        Ok(response)
    }

    fn asked(&self, method: &Method, headers: &HeaderMap) -> Asked {
        // Ranges are defined for GET alone.
        let same = headers.get(header::IF_RANGE).is_none_or(|etag| etag == self.etag.as_str());
        if method != Method::GET || !same {
            return Asked::Whole;
        }
        let value = headers.get(header::RANGE).map(|value| value.to_str().unwrap_or("bytes=?"));
        range::parse(value, self.len)
    }
}

/// Whether the client has it already.
pub(crate) fn none_match(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = values.filter_map(|value| value.to_str().ok()).flat_map(|tags| tags.split(','));
    tags.any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    })
}

/// The metadata of a regular file. Asked before opening, because opening a pipe would wait.
pub(crate) fn regular_file(path: &Path) -> io::Result<Metadata> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        Ok(metadata)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

fn unsatisfiable(len: u64) -> Refusal {
    let message = format!("not a single byte range inside the file's {len} bytes");
    let refusal = Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_range", message);
    match HeaderValue::try_from(format!("bytes */{len}")) {
        Ok(value) => refusal.with(header::CONTENT_RANGE, value),
        Err(_) => refusal,
    }
}

/// `length` bytes from `start` on. The next piece is read while the last one is sent; a client that does not read stops both.
fn pieces(file: File, start: u64, length: u64) -> impl Stream<Item = io::Result<Bytes>> {
    let first = read(file, Some(start), length);
    stream::try_unfold(Some((first, length)), |reading| async {
        let Some((piece, left)) = reading else { return Ok(None) };
        let (file, bytes) = piece.await??;
        let left = left - bytes.len() as u64;
        let next = (left > 0).then(|| (read(file, None, left), left));
        Ok(Some((bytes, next)))
    })
}

/// Reads one piece on a thread that may wait for the disk.
fn read(mut file: File, seek: Option<u64>, left: u64) -> JoinHandle<io::Result<(File, Bytes)>> {
    spawn_blocking(move || {
        if let Some(start) = seek {
            file.seek(SeekFrom::Start(start))?;
        }
        let want = left.min(PIECE);
        let mut bytes = Vec::with_capacity(want as usize);
        let got = (&file).take(want).read_to_end(&mut bytes)?;
        if got as u64 != want {
            let problem = "the file became shorter while it was sent";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        Ok((file, bytes.into()))
    })
}
