//! One test for each way a server can misbehave.

mod changes;
mod interruptions;
mod ranges;
mod redirects;
mod server;

use std::{ops::Range, time::Duration};

use pollster::block_on;

use self::server::{Reply, Request, Server};
use crate::{ByteSource, Bytes, HttpOptions, HttpSource, SourceError};

/// Bytes that depend on their offset.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(byte_at).collect()
}

fn byte_at(index: usize) -> u8 {
    (index % 251) as u8
}

/// Options for a server on the same machine.
fn short_timeouts() -> HttpOptions {
    HttpOptions {
        attempts: 4,
        backoff: Duration::from_millis(1),
        stall: Duration::from_millis(2_000),
        ..HttpOptions::default()
    }
}

fn open(server: &Server) -> Result<HttpSource, SourceError> {
    HttpSource::open(&server.url("/model.gguf"), short_timeouts())
}

fn read(source: &HttpSource, range: Range<u64>) -> Result<Bytes, SourceError> {
    block_on(source.read(range))
}

/// A server whose first response is right; `later` changes the following ones.
fn good_head_then(
    file: Vec<u8>,
    later: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::start(move |request| {
        let reply = Reply::part(&file, request);
        if request.number == 0 { reply } else { later(request, reply) }
    })
}

/// The error of opening a source at a server with this handler.
fn open_error(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> SourceError {
    open(&Server::start(handler)).expect_err("opening must fail")
}

/// The error of reading a range past the head, with responses changed by `later`.
fn read_error(later: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static) -> SourceError {
    let server = good_head_then(content(200_000), later);
    let source = open(&server).expect("opening must succeed");
    read(&source, 100_000..150_000).expect_err("reading must fail")
}
